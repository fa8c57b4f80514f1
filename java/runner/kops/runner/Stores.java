package kops.runner;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.Optional;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/**
 * Puts key-value stores in memory in place of RocksDB ones, behind all the layers that cache, log and measure.
 *
 * <p>Others stay where they are. RocksDB keeps windows and sessions by the segment: up to 3.3 a read still finds those of a segment whose
 * last window has not expired, and one in memory does not; what is joined late would differ.
 */
final class Stores {
    private static final String STATE = "org.apache.kafka.streams.state.internals.";

    private Stores() {}

    /** @return whether any of the stores is still a persistent one */
    static boolean swap(Collection<?> stores, boolean wanted, Memory memory) {
        boolean persistent = false;
        for (Object store : stores) {
            if (wanted) {
                swap(store, memory);
            }
            persistent |= (Boolean) Versions.call(store, "persistent");
        }
        return persistent;
    }

    private static void swap(Object store, Memory memory) {
        Class<?> wrapper = Versions.type(STATE + "WrappedStateStore");
        Object above = store;
        while (wrapper.isInstance(above)) {
            Object below = Versions.get(above, "wrapped");
            Optional<Object> other = inMemory(below, memory);
            if (other.isPresent()) {
                try {
                    Versions.field(wrapper, "wrapped").set(above, other.get());
                } catch (IllegalAccessException problem) {
                    throw new IllegalStateException(problem);
                }
                return;
            }
            above = below;
        }
    }

    private static Optional<Object> inMemory(Object store, Memory memory) {
        String type = store.getClass().getName();
        if (!type.startsWith(STATE + "RocksDB")) {
            return Optional.empty();
        }
        String name = (String) Versions.call(store, "name");
        if (Versions.type(STATE + "RocksDBStore").isInstance(store)) {
            Optional<Class<?>> headers =
                    Versions.typeIfAny("org.apache.kafka.streams.state.HeadersBytesStore").filter(mark -> mark.isInstance(store));
            if (headers.isPresent()) {
                return Optional.of(marked(new MemoryStore(name, memory), headers.get()));
            }
            return Optional.of(store instanceof TimestampedBytesStore ? new Timestamped(name, memory) : new MemoryStore(name, memory));
        }
        return Optional.empty();
    }

    /** Gives a store a mark that only some versions have: by it the library knows that a restored value gets the headers of its row too. */
    private static Object marked(MemoryStore store, Class<?> mark) {
        return Proxy.newProxyInstance(mark.getClassLoader(), new Class<?>[] {KeyValueStore.class, mark}, (proxy, method, arguments) -> {
            try {
                return method.invoke(store, arguments);
            } catch (InvocationTargetException problem) {
                throw problem.getCause();
            }
        });
    }

    /** By this mark the library knows that a restored value gets the time of its row before it. */
    private static final class Timestamped extends MemoryStore implements TimestampedBytesStore {
        Timestamped(String name, Memory memory) {
            super(name, memory);
        }
    }
}
