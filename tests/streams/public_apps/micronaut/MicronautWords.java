package published;

import io.micronaut.configuration.kafka.streams.ConfiguredStreamBuilder;
import io.micronaut.context.ApplicationContext;
import io.micronaut.context.annotation.Factory;
import io.micronaut.context.annotation.Value;
import io.micronaut.runtime.Micronaut;
import jakarta.inject.Singleton;
import java.util.Arrays;
import java.util.Locale;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Words counted: after the documented topology of Micronaut's guide to Kafka Streams. */
@Factory
public class MicronautWords {
    public static void main(final String[] arguments) throws Exception {
        final ApplicationContext context = Micronaut.run(MicronautWords.class, arguments);
        Runtime.getRuntime().addShutdownHook(new Thread(context::close));
        new java.util.concurrent.CountDownLatch(1).await();
    }

    /** The topology, of the builder that Micronaut starts. */
    @Singleton
    KStream<String, String> words(
            final ConfiguredStreamBuilder builder, @Value("${app.in}") final String in, @Value("${app.out}") final String out) {
        final KStream<String, String> lines = builder.stream(in);
        lines
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("word-count-store-java"))
            .toStream()
            .to(out, Produced.with(Serdes.String(), Serdes.Long()));
        return lines;
    }
}
