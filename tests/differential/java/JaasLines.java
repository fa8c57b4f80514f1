import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** A line of JAAS: its module, and its options in the order of their names, as a client of Kafka reads them. */
final class JaasLines implements Judge.Family {
    @Override
    public Object judge(JsonNode given) {
        Map<String, ?> settings = Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(given.textValue()));
        AppConfigurationEntry entry = JaasContext.loadClientContext(settings).configurationEntries().get(0);
        ArrayNode found = Judge.JSON.createArrayNode().add(Judge.units(entry.getLoginModuleName()));
        TreeMap<String, Object> options = new TreeMap<>();
        entry.getOptions().forEach((name, value) -> {
            if (name != null) {
                options.put(name, value);
            }
        });
        options.forEach((name, value) -> found.addArray().add(Judge.units(name)).add(Judge.units((String) value)));
        return found;
    }
}
