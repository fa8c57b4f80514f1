import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/** A table and a count of values that have the id of a schema in front, as Confluent's serdes write it, and ask the registry for it. */
public final class Registered {
    private static final int HEAD = 5;

    private Registered() {}

    /** @param arguments those of Apps; schema.registry.url, or code.url, names the registry */
    public static void main(final String[] arguments) throws Exception {
        final String[] all = Arrays.copyOf(arguments, arguments.length + 1);
        all[arguments.length] = "default.value.serde=" + Asking.class.getName();
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.stream(arguments[3] + "-in");
        in.toTable(Materialized.as("latest"));
        in.groupByKey().count(Materialized.as("counts"));
        Apps.run(all, builder.build(new Properties()));
    }

    /** A serde that reads a schema by its id; with the setting registers it writes that of its own schema, which it registers first. */
    public static final class Asking implements Serde<String> {
        private static final String CONTENT = "application/vnd.schemaregistry.v1+json";

        private final Map<Integer, String> known = new ConcurrentHashMap<>();
        private final Map<String, Integer> registered = new ConcurrentHashMap<>();
        private String url;
        private boolean registers;

        @Override
        public void configure(final Map<String, ?> settings, final boolean isKey) {
            url = (String) (settings.containsKey("code.url") ? settings.get("code.url") : settings.get("schema.registry.url"));
            registers = settings.containsKey("registers");
        }

        @Override
        public Serializer<String> serializer() {
            return (topic, text) -> {
                if (text == null) return null;
                final byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
                if (registers) ByteBuffer.wrap(bytes).putInt(1, registered.computeIfAbsent(topic + "-value", this::register));
                return bytes;
            };
        }

        @Override
        public Deserializer<String> deserializer() {
            return (topic, bytes) -> {
                if (bytes == null) return null;
                known.computeIfAbsent(ByteBuffer.wrap(bytes, 1, HEAD - 1).getInt(), this::schema);
                return new String(bytes, StandardCharsets.ISO_8859_1);
            };
        }

        private int register(final String subject) {
            try {
                final HttpURLConnection asked = (HttpURLConnection) new URL(url + "/subjects/" + subject + "/versions").openConnection();
                asked.setRequestMethod("POST");
                asked.setRequestProperty("Content-Type", CONTENT);
                asked.setDoOutput(true);
                final String schema = "{\"schema\": \"{\\\"type\\\": \\\"string\\\", \\\"doc\\\": \\\"" + subject + "\\\"}\"}";
                asked.getOutputStream().write(schema.getBytes(StandardCharsets.UTF_8));
                try (InputStream in = asked.getInputStream()) {
                    final String answer = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                    return Integer.parseInt(answer.replaceAll("(?s).*\"id\" *: *([0-9]+).*", "$1"));
                }
            } catch (final IOException error) {
                throw new SerializationException("cannot register a schema under " + subject, error);
            }
        }

        private String schema(final int id) {
            try (InputStream in = new URL(url + "/schemas/ids/" + id).openStream()) {
                return new String(in.readAllBytes(), StandardCharsets.UTF_8);
            } catch (final IOException error) {
                throw new SerializationException("cannot read the schema " + id, error);
            }
        }
    }
}
