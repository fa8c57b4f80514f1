import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Users with few events in an hour, once the hour is over: after the documented topology of "Window final results" in Apache Kafka's
 * developer guide.
 */
public final class Alerts {
    private Alerts() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(settings.getProperty("in"))
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofMinutes(10)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("count-metric").withKeySerde(Serdes.String()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream()
            .filter((user, events) -> events < 3)
            .map((user, events) -> new KeyValue<>(user.key() + "@" + user.window().start(), events))
            .to(settings.getProperty("out"), Produced.with(Serdes.String(), Serdes.Long()));
        Given.run(builder.build(), settings);
    }
}
