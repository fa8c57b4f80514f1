import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.util.Map;
import java.util.Properties;
import java.util.function.UnaryOperator;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * The sum of the prices of each item, of a table of PostgreSQL that Debezium keeps in the topic {@code shop.public.prices}.
 *
 * <p>A row that changes is taken out of its item's sum and added again, one that is deleted is taken out. The table holds rows as they came,
 * and they are decoded where they are added: so its store is the topic itself, and has no changelog. Every new sum is written to
 * {@code shop-totals}. The registry is that of the variable REGISTRY_URL.
 */
public final class ShopApplication {
    static final Example EXAMPLE = new Example("shop-app", ShopApplication::topology);

    private ShopApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        String prices = topic.apply("shop.public.prices");
        Deserializer<GenericRecord> avro = new AvroKafkaDeserializer<>();
        avro.configure(Map.of("apicurio.registry.url", System.getenv("REGISTRY_URL"), "apicurio.registry.as-confluent", true,
                "apicurio.registry.use-id", "contentId"), false);
        StreamsBuilder builder = new StreamsBuilder();
        builder.table(prices, Consumed.with(Serdes.Bytes(), Serdes.Bytes()))
                .groupBy((id, row) -> pair(avro.deserialize(prices, row.get())), Grouped.with("totals", Serdes.String(), Serdes.Double()))
                .aggregate(() -> 0.0, (item, price, total) -> total + price, (item, price, total) -> total - price,
                        Example.store("totals", Serdes.Double()))
                .toStream()
                .to(topic.apply("shop-totals"), Produced.with(Serdes.String(), Serdes.Double()));
        Properties settings = new Properties();
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        return builder.build(settings);
    }

    private static KeyValue<String, Double> pair(GenericRecord row) {
        return KeyValue.pair(row.get("item").toString(), ((Number) row.get("price")).doubleValue());
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
