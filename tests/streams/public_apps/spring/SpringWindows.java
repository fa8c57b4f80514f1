import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafkaStreams;

/**
 * Texts in capitals, joined by the second, the long ones sent on: after the documented topology of the Kafka Streams example in the reference
 * of Spring for Apache Kafka, as an application of Spring Boot.
 */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@EnableKafkaStreams
public class SpringWindows {
    public static void main(final String[] arguments) {
        SpringApplication.run(SpringWindows.class, arguments);
    }

    /** The topology, of the builder that Spring starts. */
    @Bean
    public KStream<Integer, String> texts(
            final StreamsBuilder builder, @Value("${app.in}") final String in, @Value("${app.out}") final String out) {
        final KStream<Integer, String> texts = builder.stream(in, Consumed.with(Serdes.Integer(), Serdes.String()));
        texts
            .mapValues((key, text) -> text.toUpperCase())
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(1), Duration.ofHours(1)))
            .reduce((one, other) -> one + other, Named.as("windowStore"))
            .toStream()
            .map((window, text) -> new KeyValue<>(window.key(), text))
            .filter((key, text) -> text.length() > 20)
            .to(out, Produced.with(Serdes.Integer(), Serdes.String()));
        return texts;
    }
}
