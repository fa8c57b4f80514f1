package kops.runner;

import java.util.Collection;
import java.util.Optional;

/**
 * Puts stores in memory in place of RocksDB ones, behind all the layers that cache, log and measure.
 *
 * <p>What a store logs does not depend on where it keeps its bytes. What a program can see of the place: approximateNumEntries() is an
 * estimate in RocksDB; an open iterator over a RocksDB store does not see what is written meanwhile. Stores that are not known here stay.
 */
final class Stores {
    private static final String STATE = "org.apache.kafka.streams.state.internals.";

    private Stores() {}

    /** @return whether any of the stores is still a persistent one */
    static boolean swap(Collection<?> stores, boolean wanted) {
        boolean persistent = false;
        for (Object store : stores) {
            if (wanted) {
                swap(store);
            }
            persistent |= (Boolean) Versions.call(store, "persistent");
        }
        return persistent;
    }

    private static void swap(Object store) {
        Class<?> wrapper = Versions.type(STATE + "WrappedStateStore");
        Object above = store;
        while (wrapper.isInstance(above)) {
            Object below = Versions.get(above, "wrapped");
            Optional<Object> other = inMemory(below);
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

    private static Optional<Object> inMemory(Object store) {
        String type = store.getClass().getName();
        if (!type.startsWith(STATE + "RocksDB")) {
            return Optional.empty();
        }
        String name = (String) Versions.call(store, "name");
        if (Versions.type(STATE + "RocksDBStore").isInstance(store)) {
            return Optional.of(Versions.make(STATE + "InMemoryKeyValueStore", name));
        }
        return Optional.empty();
    }
}
