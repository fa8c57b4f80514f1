package kops.runner;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Leaves out the caches before key-value stores, where nobody can tell: they cost more than the rest of the way to a store in memory.
 *
 * <p>A cache decides how many of a key's updates go to the changelog and to the processors behind the store. Of the changelog only the last
 * row of each key is wanted, which is the same without one, unless the store keeps no timestamps. The processors behind must neither keep
 * anything nor write into a topic that is kept; those that use the store must be the library's, which get and put one key at a time.
 */
final class Caches {
    private static final String STATE = "org.apache.kafka.streams.state.internals.";
    private static final String LIBRARY = "org.apache.kafka.streams.kstream.internals.";
    private static final Set<String> WITHOUT_TIMES =
            Set.of(STATE + "KeyValueToTimestampedKeyValueByteStoreAdapter", STATE + "PlainToHeadersStoreAdapter");
    private static final String ADAPTER = Versions.INTERNALS + "ProcessorAdapter"; // of processors of the older interface

    private Caches() {}

    /** @param topology a ProcessorTopology whose sinks write into no topic that is kept, and of whose changelogs the last rows are */
    static void leaveOut(Object topology) {
        Collection<?> nodes = (Collection<?>) Versions.call(topology, "processors");
        for (Object store : (Collection<?>) Versions.call(topology, "stateStores")) {
            Object name = Versions.call(store, "name");
            if (nodes.stream().filter(node -> stores(node).contains(name)).allMatch(Caches::isUnobserved)) {
                leaveOutBefore(store);
            }
        }
    }

    private static boolean isUnobserved(Object user) {
        Object processor = Versions.get(user, "processor");
        if (processor != null && processor.getClass().getName().equals(ADAPTER)) {
            processor = Versions.get(processor, "delegate");
        }
        String type = processor == null ? "" : processor.getClass().getName();
        if (!type.startsWith(LIBRARY) || type.contains("Transform")) { // which call the program's own transformers
            return false;
        }
        Set<Object> seen = new HashSet<>();
        Deque<Object> left = new ArrayDeque<>((List<?>) Versions.call(user, "children"));
        while (!left.isEmpty()) {
            Object node = left.pop();
            if (seen.add(node)) {
                if (!stores(node).isEmpty()) {
                    return false;
                }
                left.addAll((List<?>) Versions.call(node, "children"));
            }
        }
        return true;
    }

    private static Set<?> stores(Object node) {
        Object names = Versions.get(node, "stateStores");
        return names == null ? Set.of() : (Set<?>) names; // null: of sources and sinks
    }

    private static void leaveOutBefore(Object store) {
        Class<?> wrapper = Versions.type(STATE + "WrappedStateStore");
        for (Object above = store; wrapper.isInstance(above); above = Versions.get(above, "wrapped")) {
            Object below = Versions.get(above, "wrapped");
            if (below.getClass().getName().equals(STATE + "CachingKeyValueStore")) {
                if (losesTimes(Versions.get(below, "wrapped"))) {
                    return;
                }
                try {
                    Versions.field(wrapper, "wrapped").set(above, Versions.get(below, "wrapped"));
                } catch (IllegalAccessException problem) {
                    throw new IllegalStateException(problem);
                }
                return;
            }
        }
    }

    /** Whether a store keeps no timestamps, as that of Stores.persistentKeyValueStore: only the cache has those of what was put before. */
    private static boolean losesTimes(Object store) {
        Class<?> wrapper = Versions.type(STATE + "WrappedStateStore");
        Object at = store;
        while (wrapper.isInstance(at)) {
            at = Versions.get(at, "wrapped");
        }
        return WITHOUT_TIMES.contains(at.getClass().getName());
    }
}
