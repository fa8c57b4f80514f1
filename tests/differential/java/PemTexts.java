import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.security.Key;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Certificates, and a key with its password: as a client of Kafka reads them from its settings. The answer is the DER of the certificates of
 * the trust store, or of the chain and the key, in base64.
 */
final class PemTexts implements Judge.Family {
    private static final ConfigDef SETTINGS = new ConfigDef();

    static {
        SslConfigs.addClientSslSupport(SETTINGS);
    }

    @Override
    public Object judge(JsonNode given) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        if (given.has("trusted")) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.certificates", given.get("trusted").textValue());
        } else {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.certificate.chain", given.get("chain").textValue());
            settings.put("ssl.keystore.key", given.get("key").textValue());
            if (given.has("password")) {
                settings.put("ssl.key.password", given.get("password").textValue());
            }
        }
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(SETTINGS.parse(settings));
            return given.has("trusted") ? trusted(factory.truststore()) : identity(factory.keystore(), given);
        }
    }

    private static ArrayNode trusted(KeyStore store) throws Exception {
        List<String> aliases = new ArrayList<>(Collections.list(store.aliases()));
        aliases.sort((one, other) -> Integer.parseInt(one.substring("kafka".length())) - Integer.parseInt(other.substring("kafka".length())));
        ArrayNode found = Judge.JSON.createArrayNode();
        for (String alias : aliases) {
            found.add(Base64.getEncoder().encodeToString(store.getCertificate(alias).getEncoded()));
        }
        return found;
    }

    private static ArrayNode identity(KeyStore store, JsonNode given) throws Exception {
        Key key = store.getKey("kafka", given.has("password") ? given.get("password").textValue().toCharArray() : null);
        ArrayNode found = Judge.JSON.createArrayNode().add(Base64.getEncoder().encodeToString(key.getEncoded()));
        for (Certificate each : store.getCertificateChain("kafka")) {
            found.add(Base64.getEncoder().encodeToString(each.getEncoded()));
        }
        return found;
    }
}
