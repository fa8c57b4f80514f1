import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * Impressions of advertisements with their clicks, also those without: after the documented topology of Confluent's example of a join of two
 * streams. Impressions that were not joined are emitted with each record, and not only every second of the clock.
 */
public final class Clicks {
    private Clicks() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> impressions = builder.stream(settings.getProperty("in"));
        final KStream<String, String> clicks = builder.stream(settings.getProperty("clicks"));
        impressions
            .outerJoin(
                clicks,
                (impression, click) -> impression + "/" + click,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(5), Duration.ofSeconds(20)),
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withStoreName("advertisements"))
            .to(settings.getProperty("out"));
        Given.run(builder.build(), settings);
    }
}
