package kops.agent;

import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.Map;

/** Classes of serdes, serializers and deserializers; null is one that the program leaves to its defaults. */
final class Serdes {
    private Serdes() {}

    static Map<String, Object> serde(final Object serde) {
        if (serde == null) return null;
        final Map<String, Object> found = new LinkedHashMap<>();
        found.put("class", Read.className(serde));
        found.put("serializer", coder(Read.call(serde, "serializer")));
        found.put("deserializer", coder(Read.call(serde, "deserializer")));
        return found;
    }

    /** A serializer or deserializer, and what it wraps if it is the library's own. */
    static Map<String, Object> coder(final Object coder) {
        if (coder == null) return null;
        final Map<String, Object> found = new LinkedHashMap<>();
        found.put("class", Read.className(coder));
        if (!coder.getClass().getName().startsWith("org.apache.kafka.")) return found;
        final Map<String, Object> inner = new LinkedHashMap<>();
        for (final Field field : Read.fields(coder)) {
            if (!field.getType().getName().matches("org\\.apache\\.kafka\\.common\\.serialization\\.(Serializer|Deserializer)")) continue;
            field.setAccessible(true);
            try {
                inner.put(field.getName(), coder(field.get(coder)));
            } catch (final IllegalAccessException error) {
                throw new IllegalStateException(error);
            }
        }
        if (!inner.isEmpty()) found.put("inner", inner);
        return found;
    }
}
