import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
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

    /** A serde that reads a schema by its id. */
    public static final class Asking implements Serde<String> {
        private final Map<Integer, String> known = new ConcurrentHashMap<>();
        private String url;

        @Override
        public void configure(final Map<String, ?> settings, final boolean isKey) {
            url = (String) (settings.containsKey("code.url") ? settings.get("code.url") : settings.get("schema.registry.url"));
        }

        @Override
        public Serializer<String> serializer() {
            return (topic, text) -> text == null ? null : text.getBytes(StandardCharsets.ISO_8859_1);
        }

        @Override
        public Deserializer<String> deserializer() {
            return (topic, bytes) -> {
                if (bytes == null) return null;
                known.computeIfAbsent(java.nio.ByteBuffer.wrap(bytes, 1, HEAD - 1).getInt(), this::schema);
                return new String(bytes, StandardCharsets.ISO_8859_1);
            };
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
