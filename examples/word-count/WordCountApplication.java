import java.util.Arrays;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/** How often each word occurs in the topic {@code lines}, kept in {@code counts-store} and written to {@code word-counts}. */
public final class WordCountApplication {
    static final Example EXAMPLE = new Example("word-count-app", WordCountApplication::topology);

    private WordCountApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topic.apply("lines"), Consumed.with(Serdes.String(), Serdes.String()))
                .filter((key, line) -> line != null)
                .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("[^a-z]+")))
                .filter((key, word) -> !word.isEmpty())
                .groupBy((key, word) -> word, Grouped.with("counts-store", Serdes.String(), Serdes.String()))
                .count(Example.store("counts-store", Serdes.Long()))
                .toStream()
                .to(topic.apply("word-counts"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
