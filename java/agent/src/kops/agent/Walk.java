package kops.agent;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the library's own suppliers of processors hold: windows, suppressions, emit strategies, and the program's functions. */
final class Walk {
    private static final String STREAMS = "org.apache.kafka.streams.";
    private static final int DEPTH = 8;

    final List<Map<String, Object>> windows = new ArrayList<>();
    final Map<String, Object> functions = new LinkedHashMap<>();
    Map<String, Object> suppress;
    String emit;
    Object leftJoin;

    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());

    Walk(final Object supplier) {
        walk(supplier, "supplier", functions, 0);
    }

    private void walk(final Object value, final String name, final Map<String, Object> into, final int depth) {
        if (value == null || depth > DEPTH || !seen.add(value)) return;
        if (isWindows(value)) {
            windows.add(windows(value));
        } else if (Read.is(value, STREAMS + "kstream.internals.suppress.SuppressedInternal")) {
            suppress = suppression(value);
        } else if (Read.is(value, STREAMS + "kstream.EmitStrategy")) {
            emit = Read.call(value, "type").toString();
        } else if (isOwn(value)) {
            if (Read.fieldOrNull(value, "joinBeforeMs") != null) windows.add(joined(value));
            if (leftJoin == null) leftJoin = Read.fieldOrNull(value, "leftJoin");
            for (final Field field : Read.fields(value)) {
                if (field.getType().getName().startsWith("java.") && !field.getName().startsWith("arg$")) continue;
                field.setAccessible(true);
                try {
                    final String captured = field.getName().startsWith("arg$") ? name + "." + field.getName().substring(4) : field.getName();
                    walk(field.get(value), captured, into, depth + 1);
                } catch (final IllegalAccessException error) {
                    throw new IllegalStateException(error);
                }
            }
            if (value.getClass().getName().contains("$$Lambda")) into.putIfAbsent(name, Read.className(value));
        } else if (!value.getClass().getName().startsWith("java.") && !value.getClass().getName().startsWith("org.apache.kafka.common.")
                && !Read.is(value, "org.slf4j.Logger") && !isPlumbing(value)) {
            into.put(name, Read.className(value));
        }
    }

    /** Whether to look into it: the library's, and not the graph from which the topology was built, nor a store. */
    private static boolean isOwn(final Object value) {
        return Library.isOwn(value.getClass()) && !isPlumbing(value);
    }

    private static boolean isPlumbing(final Object value) {
        for (final String each : List.of(
                "kstream.internals.AbstractStream", "kstream.internals.InternalStreamsBuilder", "kstream.internals.graph.GraphNode",
                "processor.internals.StoreFactory", "state.StoreBuilder", "processor.StateStore", "kstream.internals.MaterializedInternal",
                "processor.internals.InternalTopologyBuilder", "kstream.internals.KTableValueGetterSupplier")) {
            if (Read.is(value, STREAMS + each)) return true;
        }
        return Read.is(value, "org.apache.kafka.common.serialization.Serde") || Read.is(value, "org.apache.kafka.common.serialization.Serializer");
    }

    private static boolean isWindows(final Object value) {
        return Read.is(value, STREAMS + "kstream.Windows") || Read.is(value, STREAMS + "kstream.SessionWindows")
            || Read.is(value, STREAMS + "kstream.SlidingWindows");
    }

    private static Map<String, Object> windows(final Object value) {
        final Map<String, Object> found = new LinkedHashMap<>();
        found.put("class", Read.className(value));
        number(found, "size_ms", value, "sizeMs");
        number(found, "advance_ms", value, "advanceMs");
        number(found, "before_ms", value, "beforeMs");
        number(found, "after_ms", value, "afterMs");
        number(found, "gap_ms", value, "gapMs");
        number(found, "difference_ms", value, "timeDifferenceMs");
        found.put("grace_ms", Read.call(value, "gracePeriodMs"));
        return found;
    }

    /** The windows of a stream-stream join, whose suppliers keep only the numbers. */
    private static Map<String, Object> joined(final Object value) {
        final Map<String, Object> found = new LinkedHashMap<>();
        found.put("class", "org.apache.kafka.streams.kstream.JoinWindows");
        number(found, "before_ms", value, "joinBeforeMs");
        number(found, "after_ms", value, "joinAfterMs");
        number(found, "grace_ms", value, "joinGraceMs");
        return found;
    }

    private static void number(final Map<String, Object> into, final String name, final Object value, final String field) {
        try {
            into.put(name, Read.field(value, field));
        } catch (final Read.Absent error) {
            return; // other kinds of windows have others
        }
    }

    private static Map<String, Object> suppression(final Object value) {
        final Map<String, Object> found = new LinkedHashMap<>();
        final Object buffer = Read.call(value, "bufferConfig");
        found.put("name", Read.call(value, "name"));
        found.put("until_window_closes", Read.call(value, "safeToDropTombstones"));
        found.put("wait_ms", ((java.time.Duration) Read.call(value, "timeToWaitForMoreEvents")).toMillis());
        found.put("time", Read.className(Read.call(value, "timeDefinition")));
        found.put("max_records", Read.call(buffer, "maxRecords"));
        found.put("max_bytes", Read.call(buffer, "maxBytes"));
        found.put("when_full", Read.call(buffer, "bufferFullStrategy").toString());
        return found;
    }
}
