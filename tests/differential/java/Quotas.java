import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** The limit of a client, and whose allowance it uses: {"quotas": [[USER, CLIENT_ID, VALUE]...], "user", "client_id"}; "" is a default. */
public final class Quotas implements Judge.Family {
    @Override
    public Object judge(JsonNode given) throws Exception {
        ClientQuotaManager manager =
                new ClientQuotaManager(new ClientQuotaManagerConfig(), new Metrics(), QuotaType.PRODUCE, Time.SYSTEM, "");
        try {
            for (JsonNode each : given.get("quotas")) {
                manager.updateQuota(user(each.get(0)), clientId(each.get(1)), Optional.of(Quota.upperBound(each.get(2).doubleValue())));
            }
            KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, given.get("user").textValue());
            String clientId = given.get("client_id").textValue();
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("limit", manager.quota(principal, clientId).bound());
            answer.put("tags", manager.getOrCreateQuotaSensors(new Session(principal, null), clientId).metricTags());
            return answer;
        } finally {
            manager.initiateShutdown();
        }
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> user(JsonNode name) {
        if (name.isNull()) {
            return Optional.empty();
        }
        return Optional.of(
                name.textValue().isEmpty()
                        ? ClientQuotaManager.DEFAULT_USER_ENTITY
                        : new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name.textValue())));
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> clientId(JsonNode name) {
        if (name.isNull()) {
            return Optional.empty();
        }
        return Optional.of(
                name.textValue().isEmpty()
                        ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID
                        : new ClientQuotaManager.ClientIdEntity(name.textValue()));
    }
}
