import java.time.Duration;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** An application with a store of each kind, each filled from topics of its own; of Kafka Streams 3.5 and newer. */
public final class Kinds {
    private Kinds() {}

    /** @param arguments those of Apps */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-"));
    }

    private static Topology topology(final String topics) throws ReflectiveOperationException {
        final StreamsBuilder builder = new StreamsBuilder();
        windows(builder.stream(topics + "in"), topics);
        joins(builder, topics);
        tables(builder, topics);
        builder.<String, String>stream(Pattern.compile(topics + "part-.*")).groupByKey().count(Materialized.as("parts"));
        builder.table(topics + "facts", Materialized.as(Stores.persistentVersionedKeyValueStore("versions", Duration.ofHours(1))));
        try {
            Class.forName("Headed").getMethod("add", KStream.class).invoke(null, builder.<String, String>stream(topics + "tagged"));
        } catch (final ClassNotFoundException older) { // stores that keep headers are there from 4.3 on
        }
        return builder.build(new Properties());
    }

    private static void windows(final KStream<String, String> in, final String topics) {
        in.groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(10)))
            .count(Materialized.as("sessions"));
        in.groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(60), Duration.ofSeconds(20)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withKeySerde(Serdes.String()).withCachingDisabled())
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream()
            .map((window, count) -> KeyValue.pair(window.key() + "@" + window.window().start(), String.valueOf(count)))
            .to(topics + "out");
    }

    private static void joins(final StreamsBuilder builder, final String topics) {
        final KStream<String, String> left = builder.stream(topics + "left");
        final JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5));
        left.leftJoin(
            builder.<String, String>stream(topics + "right"),
            (one, other) -> one + "+" + other,
            near,
            StreamJoined.<String, String, String>as("pairs").withName("pairs"));
        final GlobalKTable<String, String> names = builder.globalTable(topics + "names", Materialized.as("names-store"));
        builder.<String, String>stream(topics + "asked")
            .join(names, (key, value) -> key, (value, name) -> value + "/" + name)
            .groupByKey()
            .reduce((held, value) -> held.length() < 40 ? held + "," + value : value, Materialized.as("named"));
    }

    private static void tables(final StreamsBuilder builder, final String topics) {
        final KTable<String, String> orders = builder.table(topics + "orders", table("orders-store"));
        final KTable<String, String> customers = builder.table(topics + "customers", table("customers-store"));
        orders.leftJoin( // which asks without a key for what is deleted
            customers,
            value -> "key-" + value.charAt(value.length() - 1),
            (order, customer) -> order + "/" + customer,
            TableJoined.as("of-customers"),
            table("joined"));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> table(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name).withCachingDisabled();
    }
}
