import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.test.ConsumerRecordFactory;

/** Prints the lines of suppress.json for the kafka-streams on its class path, whose version is the argument: 2.1.1, 2.2.1, 2.3.1 and 2.4.0. */
public final class SuppressGoldens {
    private static final String[][] INPUT = {
        {"k", "a", "100"}, {"k", "b", "103"}, {"ключ", "", "104"}, {"k", null, "105"}, {"k", "c", "106"}, {"z", "d", "300"}, {"k", "e", "301"}
    };

    public static void main(String[] arguments) {
        for (boolean windows : new boolean[] {false, true}) {
            StreamsBuilder builder = new StreamsBuilder();
            Consumed<String, String> consumed = Consumed.with(Serdes.String(), Serdes.String());
            if (windows) {
                builder.stream("in", consumed).groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                        .windowedBy(TimeWindows.of(Duration.ofMillis(10)).grace(Duration.ofMillis(5))).count(Materialized.as("s"))
                        .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream();
            } else {
                builder.table("in", consumed, Materialized.as("s"))
                        .suppress(Suppressed.untilTimeLimit(Duration.ofMillis(100), BufferConfig.unbounded())).toStream();
            }
            Properties settings = new Properties();
            settings.put("application.id", "app");
            settings.put("bootstrap.servers", "unused:1");
            settings.put("cache.max.bytes.buffering", "0");
            settings.put("state.dir", System.getProperty("java.io.tmpdir") + "/suppress-" + System.nanoTime());
            TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings, 0L);
            ConsumerRecordFactory<byte[], byte[]> made = new ConsumerRecordFactory<>("in", new ByteArraySerializer(), new ByteArraySerializer());
            for (String[] record : INPUT) {
                if (!windows || record[1] != null) {
                    RecordHeaders headers = new RecordHeaders();
                    headers.add("h", new byte[] {1});
                    if (!arguments[0].startsWith("2.1")) { // which fails on them
                        headers.add("n", null);
                    }
                    driver.pipeInput(made.create("in", bytes(record[0]), bytes(record[1]), headers, Long.parseLong(record[2])));
                }
            }
            String topic = "app-KTABLE-SUPPRESS-STATE-STORE-0000000003-changelog";
            while (true) {
                ProducerRecord<byte[], byte[]> read = driver.readOutput(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                if (read == null) {
                    break;
                }
                List<String> headers = new ArrayList<>();
                for (Header header : read.headers()) {
                    headers.add("[\"" + header.key() + "\", " + hex(header.value()) + "]");
                }
                System.out.println("{\"version\": \"" + arguments[0] + "\", \"windows\": " + windows + ", \"key\": " + hex(read.key())
                        + ", \"value\": " + hex(read.value()) + ", \"headers\": " + headers + ", \"timestamp\": " + read.timestamp() + "},");
            }
            driver.close();
        }
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String hex(byte[] data) {
        if (data == null) {
            return "null";
        }
        StringBuilder hex = new StringBuilder("\"");
        for (byte each : data) {
            hex.append(String.format("%02x", each));
        }
        return hex.append("\"").toString();
    }
}
