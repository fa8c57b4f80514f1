import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Transformer;
import org.apache.kafka.streams.kstream.ValueTransformer;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.PunctuationType;

/** Transformers, which 4.0 no longer has. */
@SuppressWarnings("deprecation")
public final class Transformers {
    private Transformers() {}

    public static void main(final String[] arguments) {
        final Properties config = new Properties();
        config.put("application.id", "transformers");
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> stream = builder.stream("in");
        stream.transform(Named::new).to("named");
        stream.transformValues(Timed::new).to("timed");
        new KafkaStreams(builder.build(), config).start();
    }

    /** A transformer with a stream-time punctuator. */
    static final class Named implements Transformer<String, String, KeyValue<String, String>> {
        @Override
        public void init(final ProcessorContext context) {
            context.schedule(Duration.ofSeconds(1), PunctuationType.STREAM_TIME, now -> { });
        }

        @Override
        public KeyValue<String, String> transform(final String key, final String value) {
            return KeyValue.pair(key, value);
        }

        @Override
        public void close() {}
    }

    /** A transformer of values that reads the clock. */
    static final class Timed implements ValueTransformer<String, String> {
        @Override
        public void init(final ProcessorContext context) {}

        @Override
        public String transform(final String value) {
            return value + System.currentTimeMillis();
        }

        @Override
        public void close() {}
    }
}
