import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * How many pieces each shop has, from the topic {@code movements}: key, the id of the shop; value {"item": "chair", "quantity": -2}.
 * Kept in the store {@code stock}; every change is written to {@code stock-levels}.
 */
public final class InventoryApplication {
    static final Example EXAMPLE = new Example("inventory-app", InventoryApplication::topology);

    private InventoryApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topic.apply("movements"), Consumed.with(Serdes.String(), Json.serde()))
                .filter((shop, movement) -> movement != null && movement.hasNonNull("quantity"))
                .groupByKey(Grouped.with(Serdes.String(), Json.serde()))
                .aggregate(() -> 0L, InventoryApplication::moved, Example.store("stock", Serdes.Long()))
                .toStream()
                .to(topic.apply("stock-levels"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private static Long moved(String shop, JsonNode movement, Long stock) {
        return stock + movement.get("quantity").asLong();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
