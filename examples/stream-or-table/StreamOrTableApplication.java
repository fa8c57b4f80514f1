import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;

/**
 * The topic {@code fruit}, key text and value long, read in both ways: as a stream, where each record is one more fact, summed in the store
 * {@code sum}; and as a table, where each record replaces the one before, kept in the store {@code latest}. Each change of the sum is
 * written to {@code fruit-sum}, each of the table to {@code fruit-latest}.
 */
public final class StreamOrTableApplication {
    static final Example EXAMPLE = new Example("stream-or-table-app", StreamOrTableApplication::topology);

    private StreamOrTableApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, Long> fruit = builder.stream(topic.apply("fruit"), Consumed.with(Serdes.String(), Serdes.Long()));
        fruit.groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                .aggregate(() -> 0L, (name, value, sum) -> sum + value, Example.store("sum", Serdes.Long()))
                .toStream()
                .to(topic.apply("fruit-sum"), Produced.with(Serdes.String(), Serdes.Long()));
        fruit.toTable(Example.store("latest", Serdes.Long()))
                .toStream()
                .to(topic.apply("fruit-latest"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
