import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.state.Stores;

/** What came with 3.5: a versioned table, and a join that waits for it; and a topology that its configuration optimizes. */
public final class Versions {
    private Versions() {}

    public static void main(final String[] arguments) {
        final Properties config = new Properties();
        config.put("application.id", "versions");
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("topology.optimization", "all");
        config.put("statestore.cache.max.bytes", "0");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> prices = builder.table("prices", Materialized.as(
            Stores.persistentVersionedKeyValueStore("price-history", Duration.ofHours(6), Duration.ofHours(1))));
        builder.<String, String>stream("orders").join(prices, (order, price) -> order + price,
            Joined.<String, String, String>as("priced").withGracePeriod(Duration.ofMinutes(3))).to("priced-orders");
        builder.table("people", Materialized.as("people-store"));
        builder.<String, String>stream(java.util.regex.Pattern.compile("visits-.*")).groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(20))).count(Materialized.as("near"));
        new KafkaStreams(builder.build(config), new StreamsConfig(config)).start();
    }
}
