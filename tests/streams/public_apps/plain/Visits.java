import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;

/** How often a user plays something in one go: after the documented topology of Confluent's example of session windows. */
public final class Visits {
    private Visits() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(settings.getProperty("in"))
            .groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofHours(1)))
            .count(Materialized.as("play-events-per-session"))
            .toStream()
            .map((user, events) -> new KeyValue<>(user.key() + "@" + user.window().start() + "-" + user.window().end(), events))
            .to(settings.getProperty("out"), Produced.with(Serdes.String(), Serdes.Long()));
        Given.run(builder.build(), settings);
    }
}
