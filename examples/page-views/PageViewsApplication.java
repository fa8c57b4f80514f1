import java.time.Duration;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Views of pages by browser, from the topic {@code views}: key, the browser; value, the page; the record's timestamp is when it was.
 * Counted in hopping windows of 5 s every 2 s, in tumbling windows of 10 s with 5 s of grace, and in sessions with a gap of 3 s.
 * All are kept for a day. Every change is written to {@code views-counted}, key {@code STORE BROWSER FROM..TO}.
 */
public final class PageViewsApplication {
    private static final Duration KEPT = Duration.ofDays(1);

    static final Example EXAMPLE = new Example("page-views-app", PageViewsApplication::topology);

    private PageViewsApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> views = builder.stream(topic.apply("views"), Consumed.with(Serdes.String(), Serdes.String()))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        String output = topic.apply("views-counted");
        write("hopping", output, views
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(5)).advanceBy(Duration.ofSeconds(2)))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("hopping")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withRetention(KEPT)));
        write("tumbling", output, views
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5)))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("tumbling")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withRetention(KEPT)));
        write("sessions", output, views
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(3)))
                .count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("sessions")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withRetention(KEPT)));
        return builder.build();
    }

    private static void write(String store, String output, KTable<Windowed<String>, Long> counts) {
        counts.toStream((key, count) -> store + " " + key.key() + " " + key.window().start() + ".." + key.window().end())
                .to(output, Produced.with(Serdes.String(), Serdes.Long()));
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
