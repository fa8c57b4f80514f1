import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * Events, each only once within some minutes, whatever their keys are: after the documented topology of Confluent's example of event
 * deduplication, with a window store of a processor that its supplier brings along.
 */
public final class Once {
    private static final long AROUND = Duration.ofMinutes(5).toMillis();

    private Once() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(settings.getProperty("in")).processValues(new Supplier()).to(settings.getProperty("out"));
        Given.run(builder.build(), settings);
    }

    private static final class Supplier implements FixedKeyProcessorSupplier<String, String, String> {
        @Override
        public FixedKeyProcessor<String, String, String> get() {
            return new Known();
        }

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(Stores.windowStoreBuilder(
                Stores.persistentWindowStore("event-ids", Duration.ofHours(2), Duration.ofMillis(2 * AROUND), false),
                Serdes.String(), Serdes.Long()));
        }
    }

    private static final class Known implements FixedKeyProcessor<String, String, String> {
        private FixedKeyProcessorContext<String, String> context;
        private WindowStore<String, Long> events;

        @Override
        public void init(final FixedKeyProcessorContext<String, String> own) {
            context = own;
            events = own.getStateStore("event-ids");
        }

        @Override
        public void process(final FixedKeyRecord<String, String> record) {
            final long time = record.timestamp();
            boolean known;
            try (WindowStoreIterator<Long> found = events.fetch(record.value(), time - AROUND, time + AROUND)) {
                known = found.hasNext();
            }
            events.put(record.value(), time, time);
            if (!known) context.forward(record);
        }
    }
}
