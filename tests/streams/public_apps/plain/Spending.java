import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Sums by customer, sent every half a minute of stream time: after the documented topology of Confluent's
 * tutorial on scheduling operations, with the Processor API alone and a store in memory.
 */
public final class Spending {
    private Spending() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final Topology topology = new Topology();
        topology.addSource("logins", Serdes.String().deserializer(), Serdes.String().deserializer(), settings.getProperty("in"));
        topology.addProcessor("sum", Sum::new, "logins");
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("spent"), Serdes.String(), Serdes.String()), "sum");
        topology.addSink("sums", settings.getProperty("out"), Serdes.String().serializer(), Serdes.String().serializer(), "sum");
        Given.run(topology, settings);
    }

    private static final class Sum implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> spent;

        @Override
        public void init(final ProcessorContext<String, String> own) {
            context = own;
            spent = own.getStateStore("spent");
            own.schedule(Duration.ofSeconds(30), PunctuationType.STREAM_TIME, this::send);
        }

        /** A sum is kept with the time of its last record. */
        @Override
        public void process(final Record<String, String> record) {
            final String held = spent.get(record.key());
            final long before = held == null ? 0 : Long.parseLong(held.split("@")[0]);
            spent.put(record.key(), before + record.value().hashCode() % 100 + "@" + record.timestamp());
        }

        private void send(final long now) {
            try (KeyValueIterator<String, String> all = spent.all()) {
                while (all.hasNext()) {
                    final KeyValue<String, String> one = all.next();
                    context.forward(new Record<>(one.key, one.value, now));
                }
            }
        }
    }
}
