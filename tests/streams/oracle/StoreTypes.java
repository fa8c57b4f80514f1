import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
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
import org.apache.kafka.streams.processor.internals.InternalTopicConfig;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** A program for each type of store, of texts from the topics "in" and "other": what each puts into its internal topics. */
final class StoreTypes {
    private static final Duration TEN = Duration.ofMillis(10);
    private static final Duration DAY = Duration.ofDays(1);

    private final StreamsBuilder builder = new StreamsBuilder();

    private StoreTypes() {}

    static Topology build(JsonNode spec) {
        StoreTypes types = new StoreTypes();
        types.add(spec.get("store_type").textValue());
        return types.builder.build(Topologies.settings(spec));
    }

    /** What Kafka Streams would set for the internal topics of a topology that has run. */
    static ObjectNode settings(Topology topology) throws Exception {
        InternalTopologyBuilder internal = (InternalTopologyBuilder) Reflection.field(topology, "internalTopologyBuilder");
        Map<String, InternalTopicConfig> topics = new HashMap<>();
        internal.subtopologyToTopicsInfo().values().forEach(info -> {
            topics.putAll(info.stateChangelogTopics);
            topics.putAll(info.repartitionSourceTopics);
        });
        ObjectNode settings = Codecs.JSON.createObjectNode();
        topics.forEach((name, config) -> settings.set(name, Codecs.JSON.valueToTree(config.properties(Map.of(), DAY.toMillis()))));
        return settings;
    }

    private void add(String type) {
        switch (type) {
            case "plain" -> {
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("s"), Serdes.String(), Serdes.String()));
                in().process(Putting::new, "s");
            }
            case "count" -> grouped().count(Materialized.as("s"));
            case "table" -> builder.table("in", consumed(), Materialized.as("s"));
            case "versioned" -> builder.table("in", consumed(), Materialized.as(Stores.persistentVersionedKeyValueStore("s", DAY)));
            case "tumbling" -> grouped().windowedBy(TimeWindows.ofSizeWithNoGrace(TEN)).count(Materialized.as("s"));
            case "hopping" -> grouped().windowedBy(TimeWindows.ofSizeWithNoGrace(TEN).advanceBy(Duration.ofMillis(4))).count(Materialized.as("s"));
            case "sliding" -> grouped().windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(TEN)).count(Materialized.as("s"));
            case "session" -> grouped().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(TEN)).count(Materialized.as("s"));
            case "join-inner" -> in().join(other(), (left, right) -> left + right, windows(), joined());
            case "join-left" -> in().leftJoin(other(), (left, right) -> left + right, windows(), joined());
            case "join-outer" -> in().outerJoin(other(), (left, right) -> left + right, windows(), joined());
            case "suppress" -> grouped().windowedBy(TimeWindows.ofSizeAndGrace(TEN, DAY)).count(Materialized.as("s"))
                    .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream();
            case "suppress-session" -> grouped().windowedBy(SessionWindows.ofInactivityGapAndGrace(TEN, DAY)).count(Materialized.as("s"))
                    .suppress(Suppressed.<Windowed<String>>untilWindowCloses(BufferConfig.unbounded()).withName("held")).toStream();
            case "suppress-table" -> builder.table("in", consumed(), Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("s"))
                    .suppress(Suppressed.untilTimeLimit(DAY, BufferConfig.unbounded())).toStream();
            case "foreign-key" -> {
                KTable<String, String> right = builder.table("other", consumed());
                builder.table("in", consumed()).join(right, value -> value.isEmpty() ? null : value.substring(0, 1), (left, held) -> left + held,
                        Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("s").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
            }
            case "grouped-table" -> builder.table("in", consumed())
                    .groupBy((key, value) -> KeyValue.pair(value.isEmpty() ? "-" : value.substring(0, 1), value), Grouped.with(Serdes.String(), Serdes.String()))
                    .count(Materialized.as("s"));
            case "grace-join" -> {
                KTable<String, String> table =
                        builder.table("other", consumed(), Materialized.as(Stores.persistentVersionedKeyValueStore("s", DAY)));
                in().join(table, (left, right) -> left + right, Joined.<String, String, String>as("waiting").withGracePeriod(DAY)
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
            }
            case "repartition" -> in().groupBy((key, value) -> value, Grouped.with(Serdes.String(), Serdes.String())).count(Materialized.as("s"));
            default -> throw new IllegalArgumentException("there is no program for " + type);
        }
    }

    private KStream<String, String> in() {
        return builder.stream("in", consumed());
    }

    private KStream<String, String> other() {
        return builder.stream("other", consumed());
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
    private static final class Putting extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, String> store = context().getStateStore("s");
            store.put(record.key(), record.value());
        }
    }
}
