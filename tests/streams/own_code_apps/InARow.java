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

/**
 * Foreign-key joins that follow one another: orders with their customers, those with the regions of these, and those again with customers.
 *
 * <p>Behind them, groups of what was found, a stream that is joined with it, and its changes counted.
 */
public final class InARow {
    private InARow() {}

    /** @param arguments those of Apps */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-"));
    }

    private static Topology topology(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> orders = builder.table(topics + "orders", table("orders-store"));
        final KTable<String, String> customers = builder.table(topics + "customers", table("customers-store"));
        final KTable<String, String> regions = builder.table(topics + "regions", table("regions-store"));
        final KTable<String, String> withCustomers =
            orders.join(customers, InARow::foreign, (order, customer) -> order + "/" + customer, table("with-customers"));
        final KTable<String, String> withRegions =
            withCustomers.leftJoin(regions, InARow::foreign, (one, region) -> one + "/" + region, table("with-regions"));
        withRegions.join(customers, InARow::foreign, (one, customer) -> one + "/" + customer, table("with-both"));
        withRegions.groupBy((key, value) -> KeyValue.pair(foreign(value), value), Grouped.as("groups")).count(Materialized.as("groups"));
        withCustomers.toStream().groupByKey().count(Materialized.as("changes"));
        builder.<String, String>stream(topics + "asked")
            .join(withCustomers, (asked, found) -> asked + "?" + found)
            .groupBy((key, value) -> "all-" + foreign(value), Grouped.as("answers"))
            .count(Materialized.as("answers"));
        return builder.build(new Properties());
    }

    /** The key that a value ends with the number of. */
    private static String foreign(final String value) {
        return "key-" + value.charAt(value.length() - 1);
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> table(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()).withCachingDisabled();
    }
}
