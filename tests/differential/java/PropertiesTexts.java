import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.ByteArrayInputStream;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;

/** The bytes of a properties file, in hexadecimal digits: read by java.util.Properties, as pairs in the order of their keys. */
final class PropertiesTexts implements Judge.Family {
    @Override
    public Object judge(JsonNode given) throws Exception {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(HexFormat.of().parseHex(given.textValue())));
        ArrayNode pairs = Judge.JSON.createArrayNode();
        new TreeMap<>(properties).forEach((key, value) -> pairs.addArray().add(Judge.units((String) key)).add(Judge.units((String) value)));
        return pairs;
    }
}
