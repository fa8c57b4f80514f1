import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;

/** A table that is joined with itself by a foreign key: people with their managers, and with those of these; and groups of what was found. */
public final class OfItself {
    private OfItself() {}

    /** @param arguments those of Apps */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-"));
    }

    private static Topology topology(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> people = builder.table(topics + "people", table("people-store"));
        final KTable<String, String> managed =
            people.join(people, OfItself::manager, (one, manager) -> one + "/" + manager, table("managed"));
        managed.leftJoin(people, OfItself::manager, (one, manager) -> one + "/" + manager, table("twice"));
        managed.groupBy((key, value) -> KeyValue.pair(manager(value), value), Grouped.as("teams")).count(Materialized.as("teams"));
        return builder.build(new Properties());
    }

    /** The key that a value ends with the number of. */
    private static String manager(final String value) {
        return "key-" + value.charAt(value.length() - 1);
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> table(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()).withCachingDisabled();
    }
}
