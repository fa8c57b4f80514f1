import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Says how the classes that everybody uses read something. A line with {"family": NAME, "cases": [...]} is answered by one with an element
 * per case, {"ok": ...} or {"error": ...}. A family is a class of that name beside this one that implements {@link Family}.
 */
public final class Judge {
    interface Family {
        /** Return what JSON can hold: texts, lists and maps. */
        Object judge(JsonNode given) throws Exception;
    }

    static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

    private Judge() {}

    public static void main(String[] arguments) throws Exception {
        JSON.getFactory().setStreamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build());
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // where libraries print
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Family> families = new HashMap<>();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            String name = request.get("family").textValue();
            if (!families.containsKey(name)) {
                families.put(name, (Family) Class.forName(name).getDeclaredConstructor().newInstance());
            }
            ArrayNode results = JSON.createArrayNode();
            for (JsonNode each : request.get("cases")) {
                results.add(answer(families.get(name), each));
            }
            answers.print(JSON.writeValueAsString(results) + "\n");
            answers.flush();
        }
    }

    private static ObjectNode answer(Family family, JsonNode given) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("ok", JSON.valueToTree(family.judge(given)));
        } catch (Exception | StackOverflowError refused) {
            answer.put("error", refused.toString());
        }
        return answer;
    }
}
