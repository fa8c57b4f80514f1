import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Instances of a real application in one process, each with an {@code application.server} and local state of its own, and what they answer
 * about each other: a request a line as JSON, an answer a line.
 */
public final class StreamsInstances {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, KafkaStreams> INSTANCES = new HashMap<>();
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private StreamsInstances() {}

    public static void main(String[] none) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode asked = JSON.readTree(line);
                switch (asked.required("do").textValue()) {
                    case "start" -> start(asked);
                    case "running" -> answer.put("running", INSTANCES.values().stream().allMatch(one -> one.state() == KafkaStreams.State.RUNNING));
                    case "key" -> key(asked, answer);
                    case "hosts" -> hosts(asked, answer);
                    case "text" -> answer.put("text", topology(asked).describe().toString());
                    case "stop" -> stop(INSTANCES.remove(asked.required("name").textValue()));
                    case "encode" -> encode(asked.required("version").intValue(), answer);
                    default -> throw new IllegalArgumentException(line);
                }
            } catch (Exception problem) {
                answer.put("error", problem.toString());
            }
            out.println(answer);
        }
        INSTANCES.values().forEach(one -> one.close(PATIENCE));
    }

    /** One of {@link TopologyTexts} by its name; else three parts: a count by key, one by value behind a repartition topic, and a table. */
    private static Topology topology(JsonNode asked) {
        String prefix = asked.required("prefix").textValue();
        if (asked.hasNonNull("topology")) {
            return new TopologyTexts(prefix + "-").all().get(asked.get("topology").textValue());
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(prefix + "-in");
        lines.groupByKey().count(Materialized.as("by-key")).toStream().to(prefix + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        lines.groupBy((key, value) -> value, Grouped.as("values")).count(Materialized.as("by-value"));
        builder.table(prefix + "-users", Materialized.as("users"));
        return builder.build();
    }

    private static void start(JsonNode asked) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        asked.required("settings").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        KafkaStreams streams = new KafkaStreams(topology(asked), settings);
        INSTANCES.put(asked.required("name").textValue(), streams);
        streams.start();
    }

    private static void stop(KafkaStreams streams) {
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP).withTimeout(PATIENCE));
    }

    private static void key(JsonNode asked, ObjectNode answer) {
        KeyQueryMetadata found = INSTANCES.get(asked.required("name").textValue())
                .queryMetadataForKey(asked.required("store").textValue(), asked.required("key").textValue(), new StringSerializer());
        answer.put("partition", found.partition()).put("active", text(found.activeHost()));
        ArrayNode standbys = answer.putArray("standbys");
        found.standbyHosts().stream().map(StreamsInstances::text).sorted().forEach(standbys::add);
    }

    private static void hosts(JsonNode asked, ObjectNode answer) {
        for (StreamsMetadata one : INSTANCES.get(asked.required("name").textValue()).metadataForAllStreamsClients()) {
            ObjectNode host = answer.putObject(text(one.hostInfo()));
            new TreeSet<>(one.stateStoreNames()).forEach(host.putArray("stores")::add);
            new TreeSet<>(one.standbyStateStoreNames()).forEach(host.putArray("standby_stores")::add);
            one.topicPartitions().stream().map(TopicPartition::toString).sorted().forEach(host.putArray("partitions")::add);
            one.standbyTopicPartitions().stream().map(TopicPartition::toString).sorted().forEach(host.putArray("standby_partitions")::add);
        }
    }

    private static String text(HostInfo host) {
        return host.host() + ":" + host.port();
    }

    /** The bytes of one subscription and one assignment, in this version of the protocol. */
    private static void encode(int version, ObjectNode answer) {
        Map<HostInfo, Set<TopicPartition>> active = new TreeMap<>((left, right) -> text(left).compareTo(text(right)));
        active.put(new HostInfo("one", 7001), Set.of(new TopicPartition("in", 0), new TopicPartition("in", 1)));
        active.put(new HostInfo("two", 7002), Set.of(new TopicPartition("app-x-repartition", 3)));
        Map<HostInfo, Set<TopicPartition>> standby = Map.of(new HostInfo("two", 7002), Set.of(new TopicPartition("in", 0)));
        var info = new AssignmentInfo(version, 11, List.of(new TaskId(0, 0), new TaskId(0, 1)),
                Map.of(new TaskId(1, 3), Set.of(new TopicPartition("app-x-repartition", 3))), active, standby, 0);
        var subscription = new SubscriptionInfo(version, 11, new ProcessId(new UUID(1, 2)), "one:7001", Map.of(new TaskId(0, 0), 5L, new TaskId(1, 3), -2L),
                (byte) 1, 0, Map.of("zone", "a"));
        answer.put("assignment", base64(info.encode())).put("subscription", base64(subscription.encode()));
    }

    private static String base64(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
