import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.avro.reflect.ReflectData;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Values in Avro, as plain classes: each value begins with the fingerprint of its schema (Avro's single-object encoding). */
final class Avro {
    private Avro() {}

    /** Reads and writes objects of a class; what is not Avro of this schema stops the application. */
    static <T> Serde<T> serde(Class<T> type) {
        ReflectData data = new ReflectData(type.getClassLoader());
        Schema schema = data.getSchema(type);
        BinaryMessageEncoder<T> encoder = new BinaryMessageEncoder<>(data, schema);
        BinaryMessageDecoder<T> decoder = new BinaryMessageDecoder<>(data, schema);
        return Serdes.serdeFrom(
                (topic, value) -> {
                    try {
                        return value == null ? null : bytes(encoder.encode(value));
                    } catch (IOException problem) {
                        throw new SerializationException(problem);
                    }
                },
                (topic, bytes) -> {
                    try {
                        return bytes == null ? null : decoder.decode(bytes);
                    } catch (IOException problem) {
                        throw new SerializationException("not a " + type.getName(), problem);
                    }
                });
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    /**
     * Encodes the values of records, which are lines of JSON, as {@code kops records produce --input json} takes them.
     *
     * @param arguments the class of the values
     */
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper().setVisibility(PropertyAccessor.FIELD, Visibility.ANY);
        Class<?> type = Class.forName(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode record = mapper.readTree(line);
            ((ObjectNode) record).put("value", encoded(type, mapper.treeToValue(record.get("value"), type))).put("value_encoding", "base64");
            System.out.println(record);
        }
    }

    private static <T> byte[] encoded(Class<T> type, Object value) {
        return serde(type).serializer().serialize("", type.cast(value));
    }
}
