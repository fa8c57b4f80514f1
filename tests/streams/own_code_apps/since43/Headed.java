import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;

/** A store that keeps the headers of records. */
public final class Headed {
    private Headed() {}

    public static void add(final KStream<String, String> in) {
        final StoreBuilder<?> store = Stores.timestampedKeyValueStoreWithHeadersBuilder(
            Stores.persistentTimestampedKeyValueStoreWithHeaders("headed"), Serdes.String(), Serdes.String());
        in.process(new ProcessorSupplier<String, String, Void, Void>() {
            @Override
            public Processor<String, String, Void, Void> get() {
                return new Keep();
            }

            @Override
            public java.util.Set<StoreBuilder<?>> stores() {
                return java.util.Set.of(store);
            }
        });
    }

    private static final class Keep implements Processor<String, String, Void, Void> {
        private TimestampedKeyValueStoreWithHeaders<String, String> store;

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            store = context.getStateStore("headed");
        }

        @Override
        public void process(final Record<String, String> record) {
            final ValueTimestampHeaders<String> kept = ValueTimestampHeaders.make(record.value(), record.timestamp(), record.headers());
            store.put(record.key(), record.value().equals("delete") ? null : kept);
        }
    }
}
