import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.test.TestRecord;

/**
 * What a Kafka Streams application with Avro values writes, without a broker: sums and counts by item, and the values as a table.
 *
 * <p>Its serde reads and writes Confluent's wire format with Avro's own library, and a schema's id comes from the registry. Arguments:
 * REGISTRY_URL APPLICATION TOPIC [READER_SUBJECT, as a SpecificAvroSerde has a schema of its own]. Reads one line of JSON, {"records": [{"key":
 * base64, "value": base64 or null, "timestamp": ms}]}, and writes one, {"topics": {changelog: [the same]}}.
 */
public final class AvroTotals {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final List<String> STORES = List.of("totals", "counts", "table");

    private AvroTotals() {}

    /** Values with an id of the registry in front. */
    private static final class Avro implements Serde<GenericRecord> {
        private final String registry;
        private final Schema reader;
        private final Map<Integer, Schema> schemas = new HashMap<>();
        private final Map<Schema, Integer> ids = new HashMap<>();

        Avro(String registry, String subject) {
            this.registry = registry;
            this.reader = subject == null ? null : parsed(ask("/subjects/" + subject + "/versions/latest", null));
        }

        @Override
        public Deserializer<GenericRecord> deserializer() {
            return (topic, data) -> {
                if (data == null) {
                    return null;
                }
                int id = ByteBuffer.wrap(data).getInt(1);
                Schema writer = schemas.computeIfAbsent(id, number -> parsed(ask("/schemas/ids/" + number, null)));
                ids.putIfAbsent(writer, id);
                try {
                    return new GenericDatumReader<GenericRecord>(writer, reader == null ? writer : reader)
                            .read(null, DecoderFactory.get().binaryDecoder(data, 5, data.length - 5, null));
                } catch (IOException problem) {
                    throw new SerializationException(problem);
                }
            };
        }

        @Override
        public Serializer<GenericRecord> serializer() {
            return (topic, value) -> {
                if (value == null) {
                    return null;
                }
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                try {
                    out.write(0);
                    out.write(ByteBuffer.allocate(4).putInt(id(topic, value.getSchema())).array());
                    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
                    new GenericDatumWriter<GenericRecord>(value.getSchema()).write(value, encoder);
                    encoder.flush();
                } catch (IOException problem) {
                    throw new SerializationException(problem);
                }
                return out.toByteArray();
            };
        }

        private int id(String topic, Schema schema) {
            ObjectNode body = JSON.createObjectNode().put("schema", schema.toString());
            return ids.computeIfAbsent(schema, each -> ask("/subjects/" + topic + "-value/versions", body).get("id").asInt());
        }

        private static Schema parsed(JsonNode body) {
            return new Schema.Parser().parse(body.get("schema").asText());
        }

        private JsonNode ask(String path, JsonNode body) {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(registry + path)).header("Content-Type", "application/json");
            if (body != null) {
                request.POST(HttpRequest.BodyPublishers.ofString(body.toString()));
            }
            try {
                return JSON.readTree(HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString()).body());
            } catch (IOException | InterruptedException problem) {
                throw new SerializationException(problem);
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        String application = arguments[1];
        String topic = arguments[2];
        Serde<GenericRecord> avro = new Avro(arguments[0], arguments.length > 3 ? arguments[3] : null);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, GenericRecord> prices = builder.stream(topic, Consumed.with(Serdes.String(), avro));
        KStream<String, Double> byItem = prices
                .filter((id, price) -> price != null && price.get("item") != null && price.get("price") != null)
                .map((id, price) -> new KeyValue<>(price.get("item").toString(), (Double) price.get("price") * quantity(price)));
        byItem.groupByKey(Grouped.with("totals", Serdes.String(), Serdes.Double()))
                .aggregate(() -> 0.0, (item, price, total) -> total + price, Materialized.<String, Double, KeyValueStore<Bytes, byte[]>>as("totals")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.Double()));
        byItem.groupByKey(Grouped.with("counts", Serdes.String(), Serdes.Double()))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()));
        prices.groupByKey(Grouped.with("table", Serdes.String(), avro))
                .reduce((old, price) -> price, Materialized.<String, GenericRecord, KeyValueStore<Bytes, byte[]>>as("table")
                        .withKeySerde(Serdes.String()).withValueSerde(avro));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:9");
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            TestInputTopic<byte[], byte[]> input = driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer());
            for (JsonNode record : JSON.readTree(System.in).get("records")) {
                input.pipeInput(new TestRecord<>(bytes(record.get("key")), bytes(record.get("value")), Instant.ofEpochMilli(record.get("timestamp").asLong())));
            }
            ObjectNode topics = JSON.createObjectNode();
            for (String store : STORES) {
                String changelog = application + "-" + store + "-changelog";
                TestOutputTopic<byte[], byte[]> output = driver.createOutputTopic(changelog, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                ArrayNode written = topics.putArray(changelog);
                for (TestRecord<byte[], byte[]> record : output.readRecordsToList()) {
                    written.addObject().put("key", text(record.key())).put("value", text(record.value())).put("timestamp", record.timestamp());
                }
            }
            System.out.println(JSON.createObjectNode().set("topics", topics));
        }
    }

    /** A reader's schema has a default for what old records lack; without one, they have no such field. */
    private static int quantity(GenericRecord price) {
        return price.hasField("quantity") && price.get("quantity") != null ? (Integer) price.get("quantity") : 1;
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String text(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }
}
