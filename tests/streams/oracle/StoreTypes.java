import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A program for each type of store, of texts from the topics "in" and "other": what each puts into its internal topics.
 *
 * <p>{"store_type": TYPE} is one of them, with a store "s"; {"store_types": [TYPE, ...]} are all of these in one application, each with a
 * store of its name, and with its name before its topics: APPLICATION-TYPE-in.
 */
final class StoreTypes {
    private static final Duration TEN = Duration.ofMillis(10);
    private static final Duration DAY = Duration.ofDays(1);

    private final StreamsBuilder builder;
    private final String topics;
    private final String store;

    private StoreTypes(StreamsBuilder builder, String topics, String store) {
        this.builder = builder;
        this.topics = topics;
        this.store = store;
    }

    static Topology build(JsonNode spec) {
        StreamsBuilder builder = new StreamsBuilder();
        if (spec.has("store_type")) {
            new StoreTypes(builder, "", "s").add(spec.get("store_type").textValue());
        }
        for (JsonNode type : spec.path("store_types")) {
            String name = type.textValue();
            new StoreTypes(builder, spec.required("application").textValue() + "-" + name + "-", name).add(name);
        }
        return builder.build(Topologies.settings(spec));
    }

    private void add(String type) {
        switch (type) {
            case "plain" -> {
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(store), Serdes.String(), Serdes.String()));
                in().process(Putting::new, store);
            }
            case "count" -> grouped().count(Materialized.as(store));
            case "table" -> builder.table(topics + "in", consumed(), Materialized.as(store));
            case "versioned" -> builder.table(topics + "in", consumed(), Materialized.as(Stores.persistentVersionedKeyValueStore(store, DAY)));
            case "tumbling" -> grouped().windowedBy(TimeWindows.ofSizeWithNoGrace(TEN)).count(Materialized.as(store));
            case "hopping" -> grouped().windowedBy(TimeWindows.ofSizeWithNoGrace(TEN).advanceBy(Duration.ofMillis(4))).count(Materialized.as(store));
            case "sliding" -> grouped().windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(TEN)).count(Materialized.as(store));
            case "session" -> grouped().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(TEN)).count(Materialized.as(store));
            case "join-inner" -> in().join(other(), (left, right) -> left + right, windows(), joined());
            case "join-left" -> in().leftJoin(other(), (left, right) -> left + right, windows(), joined());
            case "join-outer" -> in().outerJoin(other(), (left, right) -> left + right, windows(), joined());
            case "suppress" -> grouped().windowedBy(TimeWindows.ofSizeAndGrace(TEN, DAY)).count(Materialized.as(store))
                    .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream();
            case "suppress-session" -> grouped().windowedBy(SessionWindows.ofInactivityGapAndGrace(TEN, DAY)).count(Materialized.as(store))
                    .suppress(Suppressed.<Windowed<String>>untilWindowCloses(BufferConfig.unbounded()).withName("held")).toStream();
            case "suppress-table" -> builder.table(topics + "in", consumed(), Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store))
                    .suppress(Suppressed.untilTimeLimit(DAY, BufferConfig.unbounded())).toStream();
            case "foreign-key" -> {
                KTable<String, String> right = builder.table(topics + "other", consumed());
                builder.table(topics + "in", consumed()).join(right, value -> value.isEmpty() ? null : value.substring(0, 1), (left, held) -> left + held,
                        Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store).withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
            }
            case "grouped-table" -> builder.table(topics + "in", consumed())
                    .groupBy((key, value) -> KeyValue.pair(value.isEmpty() ? "-" : value.substring(0, 1), value), Grouped.with(Serdes.String(), Serdes.String()))
                    .count(Materialized.as(store));
            case "grace-join" -> {
                KTable<String, String> table =
                        builder.table(topics + "other", consumed(), Materialized.as(Stores.persistentVersionedKeyValueStore(store, DAY)));
                in().join(table, (left, right) -> left + right, Joined.<String, String, String>as("waiting").withGracePeriod(DAY)
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
            }
            case "repartition" -> in().groupBy((key, value) -> value, Grouped.with(Serdes.String(), Serdes.String())).count(Materialized.as(store));
            default -> throw new IllegalArgumentException("there is no program for " + type);
        }
    }

    private KStream<String, String> in() {
        return builder.stream(topics + "in", consumed());
    }

    private KStream<String, String> other() {
        return builder.stream(topics + "other", consumed());
    }

    private KGroupedStream<String, String> grouped() {
        return in().groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    }

    private static Consumed<String, String> consumed() {
        return Consumed.with(Serdes.String(), Serdes.String());
    }

    private static JoinWindows windows() {
        return JoinWindows.ofTimeDifferenceAndGrace(TEN, TEN);
    }

    private static StreamJoined<String, String, String> joined() {
        return StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
    }

    /** Puts each record into a plain store. */
    private final class Putting extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, String> values = context().getStateStore(store);
            values.put(record.key(), record.value());
        }
    }
}
