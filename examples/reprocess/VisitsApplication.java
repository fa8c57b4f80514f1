import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;

/**
 * How often each page was visited, from the topic {@code visits}: key, the page; value {"visitor": "ann", "bot": false}. Kept in the store
 * {@code visits}; every change is written to {@code page-visits}.
 */
public final class VisitsApplication {
    static final Example EXAMPLE = new Example("visits-v1", topic -> topology(topic, false));

    private VisitsApplication() {}

    static Topology topology(UnaryOperator<String> topic, boolean onlyPeople) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, JsonNode> visits = builder.stream(topic.apply("visits"), Consumed.with(Serdes.String(), Json.serde()));
        visits.filter((page, visit) -> !onlyPeople || (visit != null && !visit.path("bot").asBoolean()))
                .groupByKey(Grouped.with(Serdes.String(), Json.serde()))
                .count(Example.store("visits", Serdes.Long()))
                .toStream()
                .to(topic.apply("page-visits"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
