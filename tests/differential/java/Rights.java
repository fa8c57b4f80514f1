import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Whether each of some actions is allowed: {"config", "acls": [[PRINCIPAL, PERMISSION, OPERATION, TYPE, NAME, PATTERN, HOST]...], "asked"}. */
public final class Rights implements Judge.Family {
    @Override
    public Object judge(JsonNode given) throws Exception {
        Map<String, Object> config = new LinkedHashMap<>();
        given.get("config").fields().forEachRemaining(each -> config.put(each.getKey(), each.getValue().textValue()));
        Map<Uuid, StandardAcl> acls = new LinkedHashMap<>();
        for (JsonNode each : given.get("acls")) {
            acls.put(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.valueOf(each.get(3).textValue()),
                    each.get(4).textValue(),
                    PatternType.valueOf(each.get(5).textValue()),
                    each.get(0).textValue(),
                    each.get(6).textValue(),
                    AclOperation.valueOf(each.get(2).textValue()),
                    AclPermissionType.valueOf(each.get(1).textValue())));
        }
        List<Boolean> allowed = new ArrayList<>();
        try (Metrics metrics = new Metrics(); StandardAuthorizer authorizer = new StandardAuthorizer()) {
            authorizer.configure(config);
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            for (JsonNode each : given.get("asked")) {
                ResourceType type = ResourceType.valueOf(each.get(2).textValue());
                ResourcePattern resource = new ResourcePattern(type, each.get(3).textValue(), PatternType.LITERAL);
                Action action = new Action(AclOperation.valueOf(each.get(1).textValue()), resource, 1, false, false);
                String[] principal = each.get(0).textValue().split(":", 2);
                allowed.add(authorizer.authorize(from(new KafkaPrincipal(principal[0], principal[1]), each.get(4).textValue()), List.of(action))
                        .equals(List.of(AuthorizationResult.ALLOWED)));
            }
        }
        return allowed;
    }

    private static AuthorizableRequestContext from(KafkaPrincipal principal, String host) throws Exception {
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            @Override
            public String listenerName() {
                return "CLIENT";
            }

            @Override
            public SecurityProtocol securityProtocol() {
                return SecurityProtocol.SASL_SSL;
            }

            @Override
            public KafkaPrincipal principal() {
                return principal;
            }

            @Override
            public InetAddress clientAddress() {
                return address;
            }

            @Override
            public int requestType() {
                return 0;
            }

            @Override
            public int requestVersion() {
                return 0;
            }

            @Override
            public String clientId() {
                return "judge";
            }

            @Override
            public int correlationId() {
                return 0;
            }
        };
    }
}
