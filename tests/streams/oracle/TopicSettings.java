import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.internals.InternalTopicConfig;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;

/** What Kafka Streams sets for the internal topics that it makes; of 4.0 and newer. */
final class TopicSettings {
    private static final Duration DAY = Duration.ofDays(1);

    private TopicSettings() {}

    /** Those of a topology that has run. */
    static ObjectNode of(Topology topology) throws Exception {
        InternalTopologyBuilder internal = (InternalTopologyBuilder) Reflection.field(topology, "internalTopologyBuilder");
        Map<String, InternalTopicConfig> topics = new HashMap<>();
        internal.subtopologyToTopicsInfo().values().forEach(info -> {
            topics.putAll(info.stateChangelogTopics);
            topics.putAll(info.repartitionSourceTopics);
        });
        ObjectNode settings = Codecs.JSON.createObjectNode();
        topics.forEach((name, config) -> settings.set(name, Codecs.JSON.valueToTree(config.properties(Map.of(), DAY.toMillis()))));
        return settings;
    }
}
