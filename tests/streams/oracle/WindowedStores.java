import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Aggregates by key and window, described by JSON; times in milliseconds:
 *
 * <pre>"window": {"type": "window", "size": 60000, "advance": 60000, "grace": 0, "retention": 120000 | absent,
 *   "alignment": from which time on windows start, for AlignedWindows | absent}
 *  | {"type": "sliding-window", "size": the difference, ...} | {"type": "session", "size": the gap, ...}
 *  and with each: "rocksdb": true | absent, "emit": "on-close" | absent, "suppress": the name of a suppression until windows close | absent</pre>
 */
final class WindowedStores {
    private final JsonNode window;
    private final String kind;
    private final String as;
    private final String store;
    private final Serde<Object> keySerde;
    private final Serde<Object> resultSerde;

    WindowedStores(JsonNode spec, Serde<Object> keySerde, Serde<Object> resultSerde) {
        this.window = spec.required("window");
        this.kind = spec.at("/aggregate/kind").textValue();
        this.as = spec.at("/aggregate/as").textValue();
        this.store = spec.required("store").textValue();
        this.keySerde = keySerde;
        this.resultSerde = resultSerde;
    }

    KTable<Windowed<Object>, Object> of(KGroupedStream<Object, Object> grouped) {
        Duration size = millis("size");
        Duration grace = millis("grace");
        KTable<Windowed<Object>, Object> table = switch (window.required("type").textValue()) {
            case "window" -> window.hasNonNull("alignment")
                    ? time(grouped.windowedBy(new AlignedWindows(window)))
                    : time(grouped.windowedBy(TimeWindows.ofSizeAndGrace(size, grace).advanceBy(millis("advance"))));
            case "sliding-window" -> time(grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(size, grace)));
            case "session" -> session(grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(size, grace)));
            default -> throw new IllegalArgumentException("unknown windows: " + window);
        };
        return window.hasNonNull("suppress") ? suppressed(table) : table;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private KTable<Windowed<Object>, Object> suppressed(KTable table) {
        Suppressed closing = Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName(window.get("suppress").textValue());
        return table.suppress(closing);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private KTable<Windowed<Object>, Object> time(TimeWindowedKStream<Object, Object> given) {
        TimeWindowedKStream<Object, Object> windows = closing() ? given.emitStrategy(EmitStrategy.onWindowClose()) : given;
        if (kind.equals("count")) {
            return (KTable) windows.count((Materialized) this.<WindowStore<Bytes, byte[]>>materialized());
        }
        if (reducer() != null) {
            return windows.reduce(reducer(), this.<WindowStore<Bytes, byte[]>>materialized());
        }
        return windows.aggregate(initializer(), aggregator(), this.<WindowStore<Bytes, byte[]>>materialized());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private KTable<Windowed<Object>, Object> session(SessionWindowedKStream<Object, Object> given) {
        SessionWindowedKStream<Object, Object> windows = closing() ? given.emitStrategy(EmitStrategy.onWindowClose()) : given;
        if (kind.equals("count")) {
            return (KTable) windows.count((Materialized) this.<SessionStore<Bytes, byte[]>>materialized());
        }
        if (reducer() != null) {
            return windows.reduce(reducer(), this.<SessionStore<Bytes, byte[]>>materialized());
        }
        return windows.aggregate(initializer(), aggregator(), merger(), this.<SessionStore<Bytes, byte[]>>materialized());
    }

    /** The keys and windows that stores of texts as keys still find, by store. */
    static ObjectNode held(TopologyTestDriver driver, JsonNode specs) {
        ObjectNode stores = Codecs.JSON.createObjectNode();
        for (JsonNode spec : specs) {
            String store = spec.required("store").textValue();
            ArrayNode found = stores.putArray(store);
            if (spec.at("/window/type").asText().equals("session")) {
                try (KeyValueIterator<Windowed<Object>, Object> all = driver.<Object, Object>getSessionStore(store).fetch(null, null)) {
                    all.forEachRemaining(entry -> add(found, entry.key));
                }
            } else {
                try (KeyValueIterator<Windowed<Object>, ?> all = driver.<Object, Object>getTimestampedWindowStore(store).all()) {
                    all.forEachRemaining(entry -> add(found, entry.key));
                }
            }
        }
        return stores;
    }

    private static void add(ArrayNode found, Windowed<Object> key) {
        found.addArray().add((String) key.key()).add(key.window().start()).add(key.window().end());
    }

    private boolean closing() {
        return window.path("emit").asText().equals("on-close");
    }

    private Reducer<Object> reducer() {
        return switch (kind) {
            case "min" -> Codecs::least;
            case "max" -> Codecs::greatest;
            case "last" -> (old, value) -> value;
            case "first" -> (old, value) -> old;
            case "concat" -> (old, value) -> (String) old + value;
            default -> null;
        };
    }

    private Initializer<Object> initializer() {
        return () -> kind.equals("sum") ? Codecs.zero(as) : "";
    }

    private Aggregator<Object, Object, Object> aggregator() {
        if (kind.equals("sum")) {
            return (key, value, sum) -> Codecs.add(sum, value);
        }
        if (kind.equals("concat_or_delete")) {
            return (key, value, old) -> value.equals("") ? null : (String) old + value;
        }
        throw new IllegalArgumentException("unknown kind of aggregate in windows: " + kind);
    }

    private Merger<Object, Object> merger() {
        return kind.equals("sum") ? (key, one, two) -> Codecs.add(one, two) : (key, one, two) -> (String) one + two;
    }

    private <S extends org.apache.kafka.streams.processor.StateStore> Materialized<Object, Object, S> materialized() {
        Materialized<Object, Object, S> to = Materialized.<Object, Object, S>as(store).withKeySerde(keySerde).withValueSerde(resultSerde);
        if (window.path("rocksdb").asBoolean()) {
            to = to.withStoreType(org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.ROCKS_DB);
        }
        return window.hasNonNull("retention") ? to.withRetention(millis("retention")) : to;
    }

    private Duration millis(String name) {
        return Duration.ofMillis(window.required(name).longValue());
    }
}
