import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts in windows as a Kafka Streams before 3.0 makes them: one request a line on standard input, one answer a line on standard output.
 *
 * <p>Request: {"type": "window" | "session", "size": ms, "grace": ms, "retention": ms, "cases": [[[key, value | null, timestamp], ...], ...]}.
 * Answer: for each case {"changelog": [[key, value, timestamp], ...] in base64, "held": [[key, start, end], ...]}.
 */
public final class OlderWindows {
    private static final ObjectMapper JSON = new ObjectMapper();

    private OlderWindows() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // whatever else prints must not break the conversation
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            ArrayNode answers = JSON.createArrayNode();
            for (JsonNode records : request.get("cases")) {
                answers.add(run(request, records));
            }
            out.println(answers);
        }
    }

    private static Topology topology(JsonNode request) {
        Duration size = millis(request, "size");
        Duration grace = millis(request, "grace");
        Duration retention = millis(request, "retention");
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> grouped = builder.stream("in", Consumed.with(Serdes.String(), Serdes.String())).groupByKey();
        if (request.get("type").asText().equals("session")) {
            grouped.windowedBy(SessionWindows.with(size).grace(grace))
                    .count(Materialized.<String, Long>as(Stores.inMemorySessionStore("store", retention)));
        } else {
            grouped.windowedBy(TimeWindows.of(size).grace(grace))
                    .count(Materialized.<String, Long>as(Stores.inMemoryWindowStore("store", retention, size, false)));
        }
        return builder.build();
    }

    private static ObjectNode run(JsonNode request, JsonNode records) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        settings.put(StreamsConfig.CACHE_MAX_BYTES_BUFFERING_CONFIG, "0");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        ObjectNode answer = JSON.createObjectNode();
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(request), settings, Instant.EPOCH)) {
            TestInputTopic<String, String> input = driver.createInputTopic("in", new StringSerializer(), new StringSerializer());
            records.forEach(record -> input.pipeInput(record.get(0).asText(), record.get(1).textValue(), record.get(2).asLong()));
            ArrayNode changelog = answer.putArray("changelog");
            driver.createOutputTopic("app-store-changelog", new ByteArrayDeserializer(), new ByteArrayDeserializer())
                    .readRecordsToList()
                    .forEach(record -> changelog.addArray().add(record.key()).add(record.value()).add(record.timestamp()));
            hold(driver, request, answer.putArray("held"));
        }
        return answer;
    }

    private static void hold(TopologyTestDriver driver, JsonNode request, ArrayNode held) {
        if (request.get("type").asText().equals("session")) {
            for (String key : new String[] {"a", "b"}) {
                try (KeyValueIterator<Windowed<String>, Object> found = driver.<String, Object>getSessionStore("store").fetch(key)) {
                    found.forEachRemaining(entry -> add(held, entry.key));
                }
            }
        } else {
            try (KeyValueIterator<Windowed<String>, ?> found = driver.<String, Object>getTimestampedWindowStore("store").all()) {
                found.forEachRemaining(entry -> add(held, entry.key));
            }
        }
    }

    private static void add(ArrayNode held, Windowed<String> key) {
        held.addArray().add(key.key()).add(key.window().start()).add(key.window().end());
    }

    private static Duration millis(JsonNode request, String name) {
        return Duration.ofMillis(request.get(name).longValue());
    }
}
