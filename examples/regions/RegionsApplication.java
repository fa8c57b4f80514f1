import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * How many people under 30 live in each region.
 *
 * <p>The table {@code user-locations} (key user, value region) is joined with the table {@code user-preferences} (key user, value
 * {"age": 27, "language": "fr"}) into {@code people}, value "REGION AGE". Those under 30 are counted by region in {@code young}: one who
 * moves is subtracted from one region and added to the other. Every change is written to {@code young-by-region}.
 */
public final class RegionsApplication {
    static final Example EXAMPLE = new Example("regions-app", RegionsApplication::topology);

    private RegionsApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> locations = builder.table(topic.apply("user-locations"), Consumed.with(Serdes.String(), Serdes.String()),
                Example.store("locations", Serdes.String()));
        KTable<String, JsonNode> preferences = builder.table(topic.apply("user-preferences"), Consumed.with(Serdes.String(), Json.serde()),
                Example.store("preferences", Json.serde()));
        KTable<String, String> people = locations.join(preferences, (region, person) -> region + " " + person.get("age").asInt(),
                Example.store("people", Serdes.String()));
        people.filter((user, person) -> Integer.parseInt(person.substring(person.lastIndexOf(' ') + 1)) < 30)
                .groupBy((user, person) -> KeyValue.pair(person.substring(0, person.lastIndexOf(' ')), user),
                        Grouped.with("young", Serdes.String(), Serdes.String()))
                .count(Example.store("young", Serdes.Long()))
                .toStream()
                .to(topic.apply("young-by-region"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
