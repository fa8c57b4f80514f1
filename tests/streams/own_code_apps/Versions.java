import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * Two versioned stores: "versions" of a table, and "kept" of a processor that puts and deletes at times of its own, out of order; and one
 * that counts. Questions, STORE or STORE@TIME, are answered by what the stores hold. Of Kafka Streams 3.5 and newer.
 */
public final class Versions {
    static final Duration HISTORY = Duration.ofMinutes(1);

    private Versions() {}

    /** @param arguments those of Apps */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-"));
    }

    private static Topology topology(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.table(topics + "facts", Materialized.as(Stores.persistentVersionedKeyValueStore("versions", HISTORY)));
        builder.<String, String>stream(topics + "counted").groupByKey().count(Materialized.as("counts"));
        final Topology topology = builder.build(new Properties());
        topology.addSource("moves", topics + "moves").addSource("questions", topics + "questions");
        topology.addProcessor("keep", Keep::new, "moves");
        topology.addStateStore(
            Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore("kept", HISTORY), Serdes.String(), Serdes.String()),
            "keep");
        topology.addProcessor("answer", Answer::new, "questions");
        topology.connectProcessorAndStateStores("answer", "versions", "kept");
        return topology.addSink("out", topics + "out", "answer");
    }

    /** Puts VALUE@TIME, or deletes at the time. */
    private static final class Keep extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(final Record<String, String> record) {
            final VersionedKeyValueStore<String, String> kept = context().getStateStore("kept");
            final String[] words = record.value().split("@");
            if (words[0].equals("delete")) {
                kept.delete(record.key(), Long.parseLong(words[1]));
            } else {
                kept.put(record.key(), words[0], Long.parseLong(words[1]));
            }
        }
    }

    private static final class Answer extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(final Record<String, String> record) {
            final String[] words = record.value().split("@");
            final VersionedKeyValueStore<String, String> store = context().getStateStore(words[0]);
            final VersionedRecord<String> found =
                words.length == 1 ? store.get(record.key()) : store.get(record.key(), Long.parseLong(words[1]));
            final String answer = found == null ? "none" : found.value() + "@" + found.timestamp();
            context().forward(new Record<>(record.key(), record.value() + "=" + answer, record.timestamp()));
        }
    }
}
