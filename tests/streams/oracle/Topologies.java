import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * One key-value store from one topic, as a program of the Streams DSL, described by JSON:
 *
 * <pre>{"application": "app", "store": "totals", "output": "out" | absent,
 *  "from": {"topic": "in", "key": "string", "value": "json"},
 *  "where": {"field": "price", "op": "not_null|eq|ne|gt|ge|lt|le", "value": 1} | absent,
 *  "key_by": {"field": "item" | absent for the value itself, "as": "string", "repartition": "totals", "partitions": 2 | absent,
 *             "partitioner": "last_letter" (of the key; needs "partitions") | absent} | absent,
 *  "merged_with": a further topic that is merged with the first behind the aggregate, so that one sub-topology reads both | absent,
 *  "aggregate": {"kind": "...", "field": "price" | absent, "as": "double"},
 *  "keeps": what the program keeps or reads besides its records, see Keeping | absent,
 *  "window": see WindowedStores | absent,
 *  "payload_time": whether records have the time that PayloadTime finds | absent,
 *  "config": {"any.streams.setting": "..."}}</pre>
 *
 * Kinds: count, sum, min, max, last, first, concat, concat_or_delete (of strings), table (a KTable of the topic), to_table (KStream.toTable),
 * plain_last and plain_concat (a Processor that puts into a plain, not timestamped, store). A specification with "tables" is one of TableTopologies,
 * one with "store_types" of StoreTypes.
 */
final class Topologies {
    private final JsonNode spec;
    private final JsonNode aggregate;
    private final String kind;
    private final String as;
    private final Serde<Object> resultSerde;
    private final String store;

    private Topologies(JsonNode spec) {
        this.spec = spec;
        this.aggregate = spec.required("aggregate");
        this.kind = aggregate.required("kind").textValue();
        this.as = aggregate.required("as").textValue();
        this.resultSerde = Codecs.serde(as);
        this.store = spec.required("store").textValue();
    }

    static Topology build(JsonNode spec) {
        if (spec.has("tables")) {
            return TableTopologies.build(spec);
        }
        if (spec.has("store_types")) {
            return StoreTypes.build(spec);
        }
        StreamsBuilder builder = new StreamsBuilder();
        if (spec.has("several")) { // programs beside each other, each with a topic and a store of its own
            spec.get("several").forEach(one -> new Topologies(one).addTo(builder));
        } else {
            new Topologies(spec).addTo(builder);
        }
        return builder.build();
    }

    /** What every use of a specification shares; a caller adds the bootstrap servers and the state directory. */
    static Properties settings(JsonNode spec) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, spec.required("application").textValue());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        if (spec.path("payload_time").asBoolean()) {
            settings.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG, PayloadTime.class);
        }
        spec.path("config").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        return settings;
    }

    private void addTo(StreamsBuilder builder) {
        JsonNode from = spec.required("from");
        String topic = from.required("topic").textValue();
        String keyFormat = from.required("key").textValue();
        Serde<Object> keySerde = Codecs.serde(keyFormat);
        Consumed<Object, Object> consumed = Consumed.with(keySerde, Codecs.serde(from.required("value").textValue()));
        if (kind.equals("table")) {
            emit(builder.table(topic, consumed, materialized(keySerde)), keySerde);
            return;
        }
        KStream<Object, Object> records = from.has("topics")
                ? builder.stream(Codecs.JSON.convertValue(from.get("topics"), new TypeReference<List<String>>() {}), consumed)
                : builder.stream(topic, consumed);
        if (spec.hasNonNull("merged_with")) {
            records.merge(builder.stream(spec.get("merged_with").textValue(), consumed)).foreach((key, value) -> {});
        }
        if (spec.hasNonNull("where")) {
            Predicate<Object, Object> kept = where(spec.get("where"));
            records = records.filter(kept);
        }
        Keeping.Number number = spec.hasNonNull("keeps") ? Keeping.of(spec.get("keeps")) : null;
        boolean adds = number != null && spec.get("keeps").get("effect").textValue().equals("add");
        if (number != null && !adds) {
            records = records.filter((key, value) -> number.of(String.valueOf(key), String.valueOf(value)) % 3 != 0);
        }
        JsonNode keyBy = spec.path("key_by");
        if (keyBy.isObject()) {
            String format = keyBy.required("as").textValue();
            keySerde = Codecs.serde(format);
            records = records.selectKey((key, value) -> value == null ? null : Codecs.convert(field(value, keyBy), format));
        }
        if (spec.hasNonNull("window")) {
            windowed(records, keySerde, from, keyBy);
            return;
        }
        if (kind.equals("count")) {
            Serde<Object> valueSerde = Codecs.serde(from.required("value").textValue());
            emit(grouped(records, keySerde, valueSerde, keyBy).count(Materialized.<Object, Long, KeyValueStore<Bytes, byte[]>>as(store)), keySerde);
            return;
        }
        KStream<Object, Object> values = records.mapValues(value -> value == null ? null : Codecs.convert(field(value, aggregate), as));
        if (adds) {
            values = values.mapValues((key, value) -> value == null ? null : added(value, number.of(String.valueOf(key), String.valueOf(value))));
        }
        if (kind.equals("to_table")) {
            emit(repartitioned(values, keySerde, keyBy).toTable(materialized(keySerde)), keySerde);
        } else if (kind.startsWith("plain_")) {
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(store), keySerde, resultSerde));
            repartitioned(values, keySerde, keyBy).process(PlainLast::new, store);
        } else {
            emit(reduced(grouped(values, keySerde, resultSerde, keyBy), keySerde), keySerde);
        }
    }

    /** Windows see null values too, so nothing is converted where records are only counted. */
    private void windowed(KStream<Object, Object> records, Serde<Object> keySerde, JsonNode from, JsonNode keyBy) {
        boolean counts = kind.equals("count");
        Serde<Object> valueSerde = counts ? Codecs.serde(from.required("value").textValue()) : resultSerde;
        KStream<Object, Object> values =
                counts ? records : records.mapValues(value -> value == null ? null : Codecs.convert(field(value, aggregate), as));
        KTable<Windowed<Object>, Object> table =
                new WindowedStores(spec, keySerde, resultSerde).of(grouped(values, keySerde, valueSerde, keyBy));
        if (spec.hasNonNull("output")) {
            table.toStream((key, value) -> key.key() + "@" + key.window().start() + "-" + key.window().end())
                    .to(spec.get("output").textValue(), Produced.with(Serdes.String(), resultSerde));
        }
    }

    private KTable<Object, Object> reduced(KGroupedStream<Object, Object> grouped, Serde<Object> keySerde) {
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> to = materialized(keySerde);
        return switch (kind) {
            case "sum" -> grouped.aggregate(() -> Codecs.zero(as), (key, value, sum) -> Codecs.add(sum, value), to);
            case "min" -> grouped.reduce(Codecs::least, to);
            case "max" -> grouped.reduce(Codecs::greatest, to);
            case "last" -> grouped.reduce((old, value) -> value, to);
            case "first" -> grouped.reduce((old, value) -> old, to);
            case "concat" -> grouped.reduce((old, value) -> (String) old + value, to);
            case "concat_or_delete" -> grouped.aggregate(() -> "", (key, value, old) -> value.equals("") ? null : (String) old + value, to);
            default -> throw new IllegalArgumentException("unknown kind of aggregate: " + kind);
        };
    }

    private KGroupedStream<Object, Object> grouped(KStream<Object, Object> stream, Serde<Object> key, Serde<Object> value, JsonNode keyBy) {
        if (keyBy.hasNonNull("partitions")) {
            return repartitioned(stream, key, value, keyBy).groupByKey(Grouped.with(key, value));
        }
        Grouped<Object, Object> how = keyBy.isObject() ? Grouped.with(repartitionName(keyBy), key, value) : Grouped.with(key, value);
        return stream.groupByKey(how);
    }

    private KStream<Object, Object> repartitioned(KStream<Object, Object> stream, Serde<Object> key, JsonNode keyBy) {
        return keyBy.isObject() ? repartitioned(stream, key, resultSerde, keyBy) : stream;
    }

    private KStream<Object, Object> repartitioned(KStream<Object, Object> stream, Serde<Object> key, Serde<Object> value, JsonNode keyBy) {
        Repartitioned<Object, Object> how = Repartitioned.<Object, Object>as(repartitionName(keyBy)).withKeySerde(key).withValueSerde(value);
        if (keyBy.hasNonNull("partitioner")) {
            how = how.withStreamPartitioner(new LastLetter());
        }
        return stream.repartition(keyBy.hasNonNull("partitions") ? how.withNumberOfPartitions(keyBy.get("partitions").intValue()) : how);
    }

    private String repartitionName(JsonNode keyBy) {
        return keyBy.path("repartition").asText(store);
    }

    private Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> materialized(Serde<Object> keySerde) {
        return Materialized.<Object, Object, KeyValueStore<Bytes, byte[]>>as(store).withKeySerde(keySerde).withValueSerde(resultSerde);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private void emit(KTable table, Serde<Object> keySerde) {
        if (spec.hasNonNull("output")) {
            table.toStream().to(spec.get("output").textValue(), Produced.with((Serde) keySerde, (Serde) resultSerde));
        }
    }

    private Object added(Object value, long number) {
        return value instanceof String text ? text + number + ";" : Codecs.add(value, Codecs.number(number, as));
    }

    static Object field(Object value, JsonNode from) {
        return from.hasNonNull("field") ? ((JsonNode) value).path(from.get("field").textValue()) : value;
    }

    /** SQL's rule: a comparison with null is not true. */
    static Predicate<Object, Object> where(JsonNode where) {
        String op = where.required("op").textValue();
        return (key, value) -> {
            Object found = value == null ? null : field(value, where);
            if (found instanceof JsonNode node) {
                found = node.isNumber() ? (Object) node.doubleValue() : node.isTextual() ? node.textValue() : null;
            } else if (found instanceof Number number) {
                found = number.doubleValue();
            }
            Optional<Object> actual = Optional.ofNullable(found);
            if (op.equals("not_null") || actual.isEmpty()) {
                return actual.isPresent();
            }
            JsonNode wanted = where.required("value");
            int order = Codecs.compare(found, wanted.isNumber() ? (Object) wanted.doubleValue() : wanted.textValue());
            return switch (op) {
                case "eq" -> order == 0;
                case "ne" -> order != 0;
                case "gt" -> order > 0;
                case "ge" -> order >= 0;
                case "lt" -> order < 0;
                case "le" -> order <= 0;
                default -> throw new IllegalArgumentException("unknown operator: " + op);
            };
        };
    }

    /** A partitioner by the last letter of a key; before 4.0 the method that returns one number is the one to implement. */
    private static final class LastLetter implements StreamPartitioner<Object, Object> {
        public Integer partition(String topic, Object key, Object value, int count) {
            String text = String.valueOf(key);
            return text.charAt(text.length() - 1) % count;
        }

        public Optional<Set<Integer>> partitions(String topic, Object key, Object value, int count) {
            return Optional.of(Set.of(partition(topic, key, value, count)));
        }
    }

    /** Keeps the latest value of a key, as a program of the Processor API would: null deletes. */
    private final class PlainLast implements Processor<Object, Object, Void, Void> {
        private KeyValueStore<Object, Object> values;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            values = context.getStateStore(store);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() != null) {
                if (kind.equals("plain_last")) {
                    values.put(record.key(), record.value());
                } else if (record.value() != null) {
                    Object old = values.get(record.key());
                    values.put(record.key(), old == null ? record.value() : old + (String) record.value());
                }
            }
        }
    }
}
