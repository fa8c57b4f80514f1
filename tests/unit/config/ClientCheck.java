import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** What the real Java makes of properties files: their contents, their JAAS line, and whether a client can be built of them. */
public class ClientCheck {
    public static void main(String[] arguments) throws Exception {
        for (int at = 1; at < arguments.length; at++) {
            Properties properties = new Properties();
            try (InputStream input = Files.newInputStream(Path.of(arguments[at]))) {
                properties.load(input);
            }
            switch (arguments[0]) {
                case "read" -> read(arguments[at], properties);
                case "jaas" -> jaas(arguments[at], properties);
                default -> build(arguments[at], properties);
            }
        }
    }

    private static void read(String file, Properties properties) {
        for (Map.Entry<Object, Object> entry : new TreeMap<>(properties).entrySet()) {
            System.out.println(file + " " + encode(entry.getKey()) + " " + encode(entry.getValue()));
        }
    }

    private static void jaas(String file, Properties properties) {
        for (String name : properties.stringPropertyNames()) {
            JaasContext context = JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(properties.getProperty(name))));
            var entry = context.configurationEntries().get(0);
            System.out.println(file + " " + encode("module") + " " + encode(entry.getLoginModuleName()));
            entry.getOptions().forEach((key, value) -> System.out.println(file + " " + encode(name + "." + key) + " " + encode(value)));
        }
    }

    private static void build(String file, Properties properties) {
        try {
            Admin.create(properties).close();
            System.out.println(file + " " + encode("built") + " " + encode("yes"));
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println(file + " " + encode("built") + " " + encode(cause.toString()));
        }
    }

    private static String encode(Object text) {
        return Base64.getEncoder().encodeToString(text.toString().getBytes(StandardCharsets.UTF_8));
    }
}
