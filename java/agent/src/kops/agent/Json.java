package kops.agent;

import java.util.Map;

/** Maps, iterables, texts, numbers, booleans and null as JSON. */
final class Json {
    private Json() {}

    static String text(final Object value) {
        final StringBuilder into = new StringBuilder();
        write(value, into);
        return into.append('\n').toString();
    }

    private static void write(final Object value, final StringBuilder into) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            into.append(value);
        } else if (value instanceof Map) {
            String separator = "{";
            for (final Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                into.append(separator);
                quote(String.valueOf(entry.getKey()), into);
                into.append(':');
                write(entry.getValue(), into);
                separator = ",";
            }
            into.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String separator = "[";
            for (final Object each : (Iterable<?>) value) {
                into.append(separator);
                write(each, into);
                separator = ",";
            }
            into.append(separator.equals("[") ? "[]" : "]");
        } else {
            quote(value.toString(), into);
        }
    }

    private static void quote(final String text, final StringBuilder into) {
        into.append('"');
        for (int i = 0; i < text.length(); i++) {
            final char c = text.charAt(i);
            if (c == '"' || c == '\\') into.append('\\').append(c);
            else if (c < ' ' || c > '~') into.append(String.format("\\u%04x", (int) c));
            else into.append(c);
        }
        into.append('"');
    }
}
