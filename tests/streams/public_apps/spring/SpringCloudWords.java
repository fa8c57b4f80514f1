import java.util.Arrays;
import java.util.Locale;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Words counted: after the documented topology of the word count in the reference of Spring Cloud Stream's binder for Kafka Streams, a function
 * that the binder joins to topics.
 */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class SpringCloudWords {
    public static void main(final String[] arguments) {
        SpringApplication.run(SpringCloudWords.class, arguments);
    }

    @Bean
    public Function<KStream<Object, String>, KStream<String, Long>> words() {
        return lines -> lines
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("word-counts"))
            .toStream();
    }
}
