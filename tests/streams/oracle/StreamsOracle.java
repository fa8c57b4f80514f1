import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * What Kafka Streams writes, without a broker: one request a line on standard input, one answer a line on standard output.
 *
 * <p>Request: {"spec": see Topologies, "records": [{"key": base64|null, "value": base64|null, "timestamp": ms, "headers": [[name, base64|null]],
 * "topic": name | absent for the one of the specification}]}.
 * A specification "several" has other windowed specifications in it, and the answer then has what their stores hold: {"held": {store: [[key, start, end]]}}.
 * Answer: {"topics": {name: [record, ...]}} with the changelog, the repartition and the output topics; or {"error": text}.
 */
public final class StreamsOracle {
    private StreamsOracle() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever else prints must not break the conversation
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line));
        }
    }

    private static String answer(String line) {
        ObjectNode answer = Codecs.JSON.createObjectNode();
        try {
            JsonNode request = Codecs.JSON.readTree(line);
            if (request.has("formats")) {
                answer.set("results", FormatCalls.answer(request));
                return answer.toString();
            }
            JsonNode spec = request.required("spec");
            Topology topology = spec.has("store_type") ? StoreTypes.build(spec) : Topologies.build(spec);
            answer.set("topics", run(topology, spec, request.required("records"), answer));
            if (spec.has("store_type")) {
                answer.set("settings", TopicSettings.of(topology));
            }
        } catch (Exception problem) { // every failure is an answer: the process serves the next request
            Throwable cause = problem;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            answer.put("error", problem.getClass().getSimpleName() + ": " + problem.getMessage() + " / " + cause);
        }
        return answer.toString();
    }

    private static ObjectNode run(Topology topology, JsonNode spec, JsonNode records, ObjectNode answer) throws IOException {
        Path state = Files.createTempDirectory("streams-oracle");
        Properties settings = Topologies.settings(spec);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.DEFAULT_DSL_STORE_CONFIG, StreamsConfig.IN_MEMORY); // the changelog is the same, and RocksDB is slow to open
        ObjectNode topics = Codecs.JSON.createObjectNode();
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.EPOCH)) {
            Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
            for (JsonNode record : records) {
                String topic = record.path("topic").asText(spec.at("/from/topic").textValue());
                inputs.computeIfAbsent(topic, name -> driver.createInputTopic(name, new ByteArraySerializer(), new ByteArraySerializer()))
                        .pipeInput(record(record));
            }
            for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                TestOutputTopic<byte[], byte[]> output =
                        driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                ArrayNode read = topics.putArray(topic);
                output.readRecordsToList().forEach(record -> read.add(json(record)));
            }
            if (spec.has("ask")) {
                TableTopologies.ask(driver, spec).forEach(topics.putArray("asked")::add);
            }
            if (spec.has("several")) {
                answer.set("held", WindowedStores.held(driver, spec.get("several")));
            }
        } finally {
            try (Stream<Path> paths = Files.walk(state)) {
                paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
        return topics;
    }

    private static TestRecord<byte[], byte[]> record(JsonNode json) throws IOException {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : json.path("headers")) {
            headers.add(header.get(0).textValue(), bytes(header.get(1)));
        }
        return new TestRecord<>(bytes(json.get("key")), bytes(json.get("value")), headers, json.get("timestamp").longValue());
    }

    private static byte[] bytes(JsonNode base64) throws IOException {
        return base64 == null || base64.isNull() ? null : base64.binaryValue();
    }

    private static ObjectNode json(TestRecord<byte[], byte[]> record) {
        ObjectNode json = Codecs.JSON.createObjectNode();
        json.put("key", record.key());
        json.put("value", record.value());
        json.put("timestamp", record.timestamp());
        ArrayNode headers = json.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return json;
    }
}
