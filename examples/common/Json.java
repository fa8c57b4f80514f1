import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** JSON values. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** Reads and writes JSON; what is not JSON stops the application. */
    static Serde<JsonNode> serde() {
        return Serdes.serdeFrom(
                (topic, value) -> value == null ? null : value.toString().getBytes(StandardCharsets.UTF_8),
                (topic, bytes) -> {
                    try {
                        return bytes == null ? null : MAPPER.readTree(bytes);
                    } catch (IOException problem) {
                        throw new SerializationException("not JSON", problem);
                    }
                });
    }
}
