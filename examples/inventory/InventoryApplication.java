import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * How many pieces of each item a shop has, from the topic {@code movements}: key, the id of the shop; value {"item": "chair", "quantity":
 * -2}. Kept in the store {@code stock} as {"chair": 8, "desk": 1}; every change is written to {@code stock-levels}.
 */
public final class InventoryApplication {
    static final Example EXAMPLE = new Example("inventory-app", InventoryApplication::topology);

    private InventoryApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topic.apply("movements"), Consumed.with(Serdes.String(), Json.serde()))
                .filter((shop, movement) -> movement != null && movement.hasNonNull("item") && movement.hasNonNull("quantity"))
                .groupByKey(Grouped.with(Serdes.String(), Json.serde()))
                .aggregate(JsonNodeFactory.instance::objectNode, InventoryApplication::moved, Example.store("stock", Json.serde()))
                .toStream()
                .to(topic.apply("stock-levels"), Produced.with(Serdes.String(), Json.serde()));
        return builder.build();
    }

    private static JsonNode moved(String shop, JsonNode movement, JsonNode stock) {
        ObjectNode changed = stock.deepCopy();
        String item = movement.get("item").asText();
        return changed.put(item, stock.path(item).asLong() + movement.get("quantity").asLong());
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
