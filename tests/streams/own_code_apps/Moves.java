import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * What can move to other partitions: counts, by key, window and session too, and a store of a processor; "shared": what cannot; "kept":
 * counts and the processor behind repartition topics, of which the program itself says the number of partitions.
 */
public final class Moves {
    private Moves() {}

    /** @param arguments those of Apps; with input=NAME it reads that topic, with partitions=N its repartition topics have that many */
    public static void main(final String[] arguments) throws Exception {
        String input = "in";
        int partitions = 0;
        for (final String each : arguments) {
            if (each.startsWith("input=")) input = each.substring("input=".length());
            if (each.startsWith("partitions=")) partitions = Integer.parseInt(each.substring("partitions=".length()));
        }
        final String topics = arguments[3] + "-";
        Apps.run(arguments, partitions > 0 ? kept(topics, partitions) : topology(topics, input, arguments[0].equals("shared")));
    }

    private static Topology kept(final String topics, final int partitions) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.<String, String>stream(topics + "in")
            .repartition(Repartitioned.<String, String>as("again").withNumberOfPartitions(partitions));
        in.groupByKey().count(Materialized.as("counts")).toStream().mapValues(String::valueOf).to(topics + "out");
        builder.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("trail"), Serdes.String(), Serdes.String()));
        in.<String, String>process(() -> new Trail(false), "trail").to(topics + "trails");
        return builder.build();
    }

    private static Topology topology(final String topics, final String input, final boolean shared) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.stream(topics + input);
        in.groupByKey().count(Materialized.as("counts")).toStream().mapValues(String::valueOf).to(topics + "out");
        in.groupBy((key, value) -> value.substring(0, 1), Grouped.as("letters")).count(Materialized.as("letters"));
        in.groupByKey().windowedBy(OwnWindows.tumbling(Duration.ofSeconds(30), Duration.ofSeconds(10))).count(Materialized.as("windows"));
        in.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(20), Duration.ofSeconds(10)))
            .count(Materialized.as("sessions"));
        builder.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("trail"), Serdes.String(), Serdes.String()));
        in.<String, String>process(() -> new Trail(shared), "trail").to(topics + "trails");
        return builder.build();
    }

    /** Joins the last values of a key in their order; "delete" deletes. Where it is shared, with how many others its task has seen. */
    private static final class Trail implements Processor<String, String, String, String> {
        private final boolean shared;
        private long seen;
        private KeyValueStore<String, String> store;
        private ProcessorContext<String, String> context;

        Trail(final boolean shared) {
            this.shared = shared;
        }

        @Override
        public void init(final ProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("trail");
        }

        @Override
        public void process(final Record<String, String> record) {
            if (record.key() == null) return;
            seen++;
            final String held = store.get(record.key());
            final String whole = (held == null ? "" : held) + "," + record.value() + (shared ? "/" + seen : "");
            final String last = record.value().equals("delete") ? null : whole.substring(Math.max(0, whole.length() - 40));
            store.put(record.key(), last);
            context.forward(record.withValue(last));
        }
    }
}
