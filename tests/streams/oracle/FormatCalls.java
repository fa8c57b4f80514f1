import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * The library's own serializers and deserializers, many cases in one request:
 *
 * <pre>{"formats": name, "cases": [[argument, ...], ...]}</pre>
 *
 * Bytes are base64. Answer: {"results": [{"ok": value} | {"error": text}, ...]}, in the order of the cases.
 */
final class FormatCalls {
    /** One format's function: arguments to what is answered, which is bytes, text, a number, a list of these, or null. */
    interface Call {
        Object apply(JsonNode arguments) throws Exception;
    }

    private FormatCalls() {}

    static ArrayNode answer(JsonNode request) throws IOException {
        String name = request.get("formats").textValue();
        Call call = KeyFormats.CALLS.get(name);
        if (call == null) {
            call = ValueFormats.CALLS.get(name);
        }
        if (call == null) {
            throw new IllegalArgumentException("there is no format " + name);
        }
        ArrayNode results = Codecs.JSON.createArrayNode();
        for (JsonNode arguments : request.get("cases")) {
            ObjectNode result = results.addObject();
            try {
                result.set("ok", Codecs.JSON.valueToTree(call.apply(arguments)));
            } catch (NoSuchMethodException | ClassNotFoundException wrong) {
                throw new IllegalStateException(wrong); // a mistake of the harness, not the library's refusal
            } catch (Exception | OutOfMemoryError refused) { // a length out of damaged bytes may be anything
                result.put("error", refused.toString());
            }
        }
        return results;
    }

    static byte[] bytes(JsonNode base64) throws IOException {
        return base64 == null || base64.isNull() ? null : base64.binaryValue();
    }

    /** [[name, base64|null], ...] */
    static Headers headers(JsonNode json) throws IOException {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : json) {
            headers.add(header.get(0).textValue(), bytes(header.get(1)));
        }
        return headers;
    }

    static ArrayNode json(Headers headers) {
        ArrayNode json = Codecs.JSON.createArrayNode();
        for (Header header : headers) {
            json.addArray().add(header.key()).add(header.value());
        }
        return json;
    }
}
