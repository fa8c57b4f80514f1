import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * Tables of tables, described by JSON: a list under "tables", each made of those before it.
 *
 * <pre>{"name": "users", "topic": "in", "key": "string", "value": "json", "store": true, "history_ms": 1000 | absent, "timestamped": false | absent}
 * {"name": "people", "join": {"left": "users", "right": "prefs", "kind": "inner|left|outer", "on": "field" | absent, "as": "string|json"}, "store": true}
 * {"name": "young", "filter": {"table": "people", "field": "age", "op": "lt", "value": 30}, "store": false}
 * {"name": "counts", "group": {"table": "young", "field": "region", "as": "string", "repartition": "counts"},
 *  "aggregate": {"kind": "count|sum|reduce|concat", "field": "amount", "as": "long"}}</pre>
 *
 * A joined string is left|right, with - for null; joined JSON has the fields of both. An output topic gets the changes of the last table.
 */
final class TableTopologies {
    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, KTable<Object, Object>> tables = new HashMap<>();
    private final Map<String, Serde<Object>> keys = new HashMap<>();
    private final Map<String, Serde<Object>> values = new HashMap<>();

    private TableTopologies() {}

    static Topology build(JsonNode spec) {
        TableTopologies made = new TableTopologies();
        String last = null;
        for (JsonNode table : spec.get("tables")) {
            last = table.required("name").textValue();
            made.tables.put(last, made.table(last, table));
        }
        if (spec.hasNonNull("output")) {
            made.tables.get(last).toStream().to(spec.get("output").textValue(), Produced.with(made.keys.get(last), made.values.get(last)));
        }
        return made.builder.build(Topologies.settings(spec));
    }

    /** What the versioned store of the last table holds: "ask" lists keys, as text, and times; a record each, with the version's timestamp. */
    static List<ObjectNode> ask(TopologyTestDriver driver, JsonNode spec) {
        VersionedKeyValueStore<Object, Object> store =
                driver.getVersionedKeyValueStore(spec.get("tables").get(spec.get("tables").size() - 1).get("name").textValue());
        List<ObjectNode> answers = new ArrayList<>();
        for (JsonNode question : spec.get("ask")) {
            VersionedRecord<Object> found = store.get(question.get(0).textValue(), question.get(1).longValue());
            ObjectNode answer = Codecs.JSON.createObjectNode();
            answer.put("key", (byte[]) null);
            answer.put("value", found == null ? null : found.value().toString().getBytes(StandardCharsets.UTF_8));
            answer.put("timestamp", found == null ? 0 : found.timestamp());
            answer.putArray("headers");
            answers.add(answer);
        }
        return answers;
    }

    private KTable<Object, Object> table(String name, JsonNode spec) {
        if (spec.has("topic")) {
            return fromTopic(name, spec);
        } else if (spec.has("join")) {
            return joined(name, spec, spec.get("join"));
        } else if (spec.has("filter")) {
            return filtered(name, spec, spec.get("filter"));
        }
        return grouped(name, spec.required("group"), spec.required("aggregate"));
    }

    private KTable<Object, Object> fromTopic(String name, JsonNode spec) {
        Serde<Object> key = remember(keys, name, Codecs.serde(spec.required("key").textValue()));
        Serde<Object> value = remember(values, name, Codecs.serde(spec.required("value").textValue()));
        String topic = spec.get("topic").textValue();
        if (spec.hasNonNull("history_ms")) {
            Duration history = Duration.ofMillis(spec.get("history_ms").longValue());
            VersionedBytesStoreSupplier versioned = Stores.persistentVersionedKeyValueStore(name, history);
            return builder.table(topic, Consumed.with(key, value), withSerdes(name, Materialized.as(versioned)));
        }
        if (!spec.path("timestamped").asBoolean(true)) {
            KeyValueBytesStoreSupplier plain = Stores.persistentKeyValueStore(name);
            return builder.table(topic, Consumed.with(key, value), withSerdes(name, Materialized.as(plain)));
        }
        return spec.path("store").asBoolean(true)
                ? builder.table(topic, Consumed.with(key, value), stored(name))
                : builder.table(topic, Consumed.with(key, value));
    }

    private KTable<Object, Object> joined(String name, JsonNode spec, JsonNode join) {
        String leftName = join.required("left").textValue();
        KTable<Object, Object> left = tables.get(leftName);
        KTable<Object, Object> right = tables.get(join.required("right").textValue());
        remember(keys, name, keys.get(leftName));
        String as = join.required("as").textValue();
        remember(values, name, Codecs.serde(as));
        ValueJoiner<Object, Object, Object> joiner = as.equals("json") ? TableTopologies::merge : TableTopologies::pair;
        String kind = join.required("kind").textValue();
        if (join.hasNonNull("on")) {
            String field = join.get("on").textValue();
            java.util.function.Function<Object, Object> foreign = value -> Codecs.convert(((JsonNode) value).path(field), "string");
            return kind.equals("inner") ? left.join(right, foreign, joiner, stored(name)) : left.leftJoin(right, foreign, joiner, stored(name));
        }
        boolean store = spec.path("store").asBoolean(true);
        return switch (kind) {
            case "inner" -> store ? left.join(right, joiner, stored(name)) : left.join(right, joiner);
            case "left" -> store ? left.leftJoin(right, joiner, stored(name)) : left.leftJoin(right, joiner);
            default -> store ? left.outerJoin(right, joiner, stored(name)) : left.outerJoin(right, joiner);
        };
    }

    private KTable<Object, Object> filtered(String name, JsonNode spec, JsonNode filter) {
        String from = filter.required("table").textValue();
        remember(keys, name, keys.get(from));
        remember(values, name, values.get(from));
        Predicate<Object, Object> kept = Topologies.where(filter);
        return spec.path("store").asBoolean(false) ? tables.get(from).filter(kept, stored(name)) : tables.get(from).filter(kept);
    }

    private KTable<Object, Object> grouped(String name, JsonNode group, JsonNode aggregate) {
        String from = group.required("table").textValue();
        Serde<Object> key = remember(keys, name, Codecs.serde(group.required("as").textValue()));
        String as = aggregate.required("as").textValue();
        remember(values, name, Codecs.serde(as));
        String kind = aggregate.required("kind").textValue();
        String format = group.get("as").textValue();
        boolean counts = kind.equals("count");
        Serde<Object> passed = counts ? values.get(from) : Codecs.serde(as);
        KGroupedTable<Object, Object> grouped = tables.get(from).groupBy(
                (oldKey, value) -> KeyValue.pair(
                        Codecs.convert(Topologies.field(value, group), format),
                        counts ? value : Codecs.convert(Topologies.field(value, aggregate), as)),
                Grouped.with(group.path("repartition").asText(name), key, passed));
        if (counts) {
            return cast(grouped.count(Materialized.<Object, Long, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(key)));
        }
        Aggregator<Object, Object, Object> add = (at, value, sum) -> Codecs.add(sum, value);
        Aggregator<Object, Object, Object> subtract = (at, value, sum) -> Codecs.add(sum, Codecs.negated(value));
        return switch (kind) {
            case "sum" -> grouped.aggregate(() -> Codecs.zero(as), add, subtract, stored(name));
            case "reduce" -> grouped.reduce(Codecs::add, (sum, value) -> Codecs.add(sum, Codecs.negated(value)), stored(name));
            case "members" -> grouped.aggregate(
                    () -> "", (at, value, sum) -> sum + "+" + value, (at, value, sum) -> without((String) sum, "+" + value), stored(name));
            default -> throw new IllegalArgumentException("unknown kind of aggregate: " + kind);
        };
    }

    /** The text without the first of these pieces; null when nothing is left. */
    private static String without(String text, String piece) {
        int at = text.indexOf(piece);
        String left = at < 0 ? text : text.substring(0, at) + text.substring(at + piece.length());
        return left.isEmpty() ? null : left;
    }

    private static Object pair(Object left, Object right) {
        return Objects.toString(left, "-") + "|" + Objects.toString(right, "-");
    }

    private static Object merge(Object left, Object right) {
        ObjectNode both = Codecs.JSON.createObjectNode();
        for (Object side : new Object[] {left, right}) {
            if (side != null) {
                both.setAll((ObjectNode) side);
            }
        }
        return both;
    }

    private Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> stored(String name) {
        return withSerdes(name, Materialized.as(name));
    }

    private Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> withSerdes(
            String name, Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store) {
        return store.withKeySerde(keys.get(name)).withValueSerde(values.get(name));
    }

    private static Serde<Object> remember(Map<String, Serde<Object>> map, String name, Serde<Object> serde) {
        map.put(name, serde);
        return serde;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static KTable<Object, Object> cast(KTable table) {
        return table;
    }
}
