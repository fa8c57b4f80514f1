import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.HexFormat;

/** A text of JSON, in hexadecimal digits: read by Jackson, each number as it is written, and each field of an object, again ones too. */
final class JsonTexts implements Judge.Family {
    private final ObjectMapper mapper = new ObjectMapper();

    JsonTexts() {
        mapper.getFactory().setStreamReadConstraints(StreamReadConstraints.builder().maxNumberLength(1_000_000).build());
    }

    @Override
    public Object judge(JsonNode given) throws Exception {
        try (JsonParser parser = mapper.getFactory().createParser(HexFormat.of().parseHex(given.textValue()))) {
            parser.nextToken();
            JsonNode found = value(parser);
            if (parser.nextToken() != null) {
                throw new IllegalArgumentException("more follows");
            }
            return found;
        }
    }

    /** Return ["number", TEXT], ["text", TEXT], ["list", ...], ["object", [NAME, VALUE], ...] or ["true"], ["false"], ["null"]. */
    private JsonNode value(JsonParser parser) throws Exception {
        ArrayNode found = Judge.JSON.createArrayNode();
        JsonToken token = parser.currentToken();
        if (token == null) {
            throw new IllegalArgumentException("nothing");
        }
        switch (token) {
            case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> {
                parser.getDecimalValue(); // it refuses some, once it is asked
                found.add("number").add(parser.getText());
            }
            case VALUE_STRING -> found.add("text").add(Judge.units(parser.getText()));
            case START_ARRAY -> {
                found.add("list");
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    found.add(value(parser));
                }
            }
            case START_OBJECT -> {
                found.add("object");
                while (parser.nextToken() != JsonToken.END_OBJECT) {
                    ArrayNode field = found.addArray();
                    field.add(Judge.units(parser.currentName()));
                    parser.nextToken();
                    field.add(value(parser));
                }
            }
            default -> found.add(token.asString());
        }
        return found;
    }
}
