package kops.agent;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** A program's StreamsConfig, without its secrets: they are taken out here, so that no file ever holds them. */
final class Settings {
    private final Pattern secret;
    private final Pattern inCamels;
    private final Pattern noSecret;
    private final String hidden;

    Settings(final Session session) {
        secret = Pattern.compile(session.setting("secret"), Pattern.CASE_INSENSITIVE);
        inCamels = Pattern.compile(session.setting("secret.in.camels"));
        noSecret = Pattern.compile(session.setting("no.secret"), Pattern.CASE_INSENSITIVE);
        hidden = session.setting("hidden");
    }

    Map<String, Object> facts(final Object config, final String applicationId, final List<Map<String, Object>> unknown) {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("given", without((Map<?, ?>) Read.call(config, "originals")));
        facts.put("effective", without((Map<?, ?>) Read.call(config, "values")));
        facts.put("main_consumer", tried("config.main_consumer", unknown, () ->
            Read.call(config, "getMainConsumerConfigs", applicationId, applicationId, 0)));
        facts.put("producer", tried("config.producer", unknown, () -> Read.call(config, "getProducerConfigs", applicationId)));
        return facts;
    }

    private Object tried(final String what, final List<Map<String, Object>> unknown, final java.util.function.Supplier<Object> read) {
        try {
            return without((Map<?, ?>) read.get());
        } catch (final RuntimeException error) {
            Capture.unknown(unknown, what, error);
            return null;
        }
    }

    private Map<String, Object> without(final Map<?, ?> settings) {
        final Map<String, Object> found = new TreeMap<>();
        settings.forEach((key, value) -> found.put(String.valueOf(key), shown(String.valueOf(key), value)));
        return found;
    }

    private Object shown(final String key, final Object value) {
        if (value == null) return null;
        if (Read.is(value, "org.apache.kafka.common.config.types.Password") || isSecret(key)) return hidden;
        if (value instanceof String || value instanceof Boolean || value instanceof Integer || value instanceof Long) return value;
        if (value instanceof Number || value instanceof Enum) return value.toString();
        if (value instanceof Class) return ((Class<?>) value).getName();
        if (value instanceof Collection) {
            final List<Object> found = new ArrayList<>();
            for (final Object each : (Collection<?>) value) found.add(shown(key, each));
            return found;
        }
        return Map.of("instance_of", Read.className(value)); // its text may hold anything
    }

    /** Options of a JVM, those that set a secret without its value. */
    List<String> withoutSecrets(final List<String> options) {
        final List<String> found = new ArrayList<>();
        for (final String each : options) {
            final int end = each.indexOf('=');
            found.add(end > 0 && isSecret(each.substring(0, end)) ? each.substring(0, end + 1) + hidden : each);
        }
        return found;
    }

    boolean isSecret(final String name) {
        return (secret.matcher(name).find() || inCamels.matcher(name).find()) && !noSecret.matcher(name).find();
    }
}
