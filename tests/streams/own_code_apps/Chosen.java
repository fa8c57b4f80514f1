import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Twelve of the oracle's programs as every version since 2.8 has them, each with topics of its own, in one application. */
public final class Chosen {
    private static final Duration TEN = Duration.ofSeconds(10);
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final StreamsBuilder builder = new StreamsBuilder();
    private final String topics;

    private Chosen(final String topics) {
        this.topics = topics;
    }

    /** @param arguments those of Apps */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, new Chosen(arguments[3] + "-").topology());
    }

    private Topology topology() {
        streams();
        windows();
        tables();
        final Topology topology = builder.build(new Properties());
        topology.addSource("of-plain", topics + "plain").addProcessor("put", Put::new, "of-plain");
        return topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("plain"), Serdes.String(), Serdes.String()), "put");
    }

    private void streams() {
        in("count").groupByKey().count(Materialized.as("count"));
        in("concat").groupByKey().aggregate(
            () -> "", (key, value, held) -> value.equals("delete") ? null : shortened(held + value), table("concat"));
        in("by-item").groupBy((key, value) -> value.substring(0, 1), Grouped.as("by-item")).count(Materialized.as("by-item"));
        in("last-by-item").selectKey((key, value) -> value.substring(0, 1))
            .repartition(Repartitioned.<String, String>as("last-by-item").withNumberOfPartitions(3))
            .groupByKey().reduce((held, value) -> value, table("last-by-item"));
        in("to-table").mapValues(value -> value.equals("delete") ? null : value).toTable(table("to-table"));
        final KStream<String, String> left = in("left");
        left.join(in("right"), (one, other) -> one + other, OwnWindows.near(TEN, TEN),
            StreamJoined.<String, String, String>as("pairs").withName("pairs").withStoreName("pairs"));
    }

    private void windows() {
        final KGroupedStream<String, String> grouped = in("windowed").groupByKey();
        grouped.windowedBy(OwnWindows.tumbling(MINUTE, TEN))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withKeySerde(Serdes.String()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream().foreach((window, count) -> { });
        in("sessions").groupByKey().windowedBy(OwnWindows.sessions(TEN, TEN)).count(Materialized.as("sessions"));
    }

    private void tables() {
        final KTable<String, String> one = builder.table(topics + "one", table("one-store"));
        final KTable<String, String> other = builder.table(topics + "other", table("other-store"));
        one.leftJoin(other, (mine, theirs) -> mine + "|" + theirs, table("joined"));
        one.groupBy((key, value) -> KeyValue.pair(value.substring(0, 1), value), Grouped.as("groups")).count(Materialized.as("groups"));
        final KTable<String, String> orders = builder.table(topics + "orders", table("orders-store"));
        final KTable<String, String> customers = builder.table(topics + "customers", table("customers-store"));
        orders.join(customers, value -> "key-" + value.charAt(value.length() - 1), (order, customer) -> order + "/" + customer, table("found"));
    }

    private KStream<String, String> in(final String name) {
        return builder.stream(topics + name);
    }

    private static String shortened(final String text) {
        return text.substring(Math.max(0, text.length() - 24));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> table(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
    }

    /** Keeps the last value of a key; "delete" deletes. */
    private static final class Put implements Processor<String, String, Void, Void> {
        private KeyValueStore<String, String> plain;

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            plain = context.getStateStore("plain");
        }

        @Override
        public void process(final Record<String, String> record) {
            plain.put(record.key(), record.value().equals("delete") ? null : record.value());
        }
    }
}
