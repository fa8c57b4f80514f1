import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.UUID;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Kafka's own serdes by the names that a state file uses, and the Java values behind them. */
final class Codecs {
    static final ObjectMapper JSON = new ObjectMapper();

    private Codecs() {}

    @SuppressWarnings("unchecked")
    static Serde<Object> serde(String format) {
        Serde<?> found = switch (format.toLowerCase(Locale.ROOT)) {
            case "string" -> Serdes.String();
            case "bytes" -> Serdes.ByteArray();
            case "long" -> Serdes.Long();
            case "int" -> Serdes.Integer();
            case "short" -> Serdes.Short();
            case "double" -> Serdes.Double();
            case "float" -> Serdes.Float();
            case "uuid" -> Serdes.UUID();
            case "json" -> Serdes.serdeFrom((topic, value) -> toJson(value), (topic, bytes) -> fromJson(bytes));
            default -> throw new IllegalArgumentException("unknown format: " + format);
        };
        return (Serde<Object>) found;
    }

    /** The value that a program with this type would hold; null for JSON's null and for a missing field. */
    static Object convert(Object value, String format) {
        if (value instanceof JsonNode node) {
            if (node.isNull() || node.isMissingNode()) {
                return null;
            }
            return switch (format) {
                case "string" -> node.isTextual() ? node.textValue() : node.toString();
                case "json" -> node;
                case "uuid" -> UUID.fromString(node.textValue());
                default -> number(node.numberValue(), format);
            };
        }
        if (value instanceof Number number) {
            return switch (format) {
                case "string" -> number.toString();
                default -> number(number, format);
            };
        }
        return value;
    }

    static Object number(Number number, String format) {
        return switch (format) {
            case "long" -> number.longValue();
            case "int" -> number.intValue();
            case "short" -> number.shortValue();
            case "double" -> number.doubleValue();
            case "float" -> number.floatValue();
            default -> throw new IllegalArgumentException("a number is not a " + format);
        };
    }

    static Object zero(String format) {
        return number(0, format);
    }

    /** Java's own addition in that type: it wraps, and rounds, as the type does. */
    static Object add(Object left, Object right) {
        if (left instanceof Long value) {
            return value + (Long) right;
        } else if (left instanceof Integer value) {
            return value + (Integer) right;
        } else if (left instanceof Short value) {
            return (short) (value + (Short) right);
        } else if (left instanceof Double value) {
            return value + (Double) right;
        } else if (left instanceof Float value) {
            return value + (Float) right;
        }
        throw new IllegalArgumentException("cannot add " + left.getClass());
    }

    /** Java's own negation in that type. */
    static Object negated(Object value) {
        if (value instanceof Short number) {
            return (short) -number;
        } else if (value instanceof Integer number) {
            return -number;
        } else if (value instanceof Long number) {
            return -number;
        } else if (value instanceof Float number) {
            return -number;
        }
        return -(Double) value;
    }

    /** Java's natural order of the type; bytes in the unsigned order of {@code Bytes}. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static int compare(Object left, Object right) {
        if (left instanceof byte[] bytes) {
            return Arrays.compareUnsigned(bytes, (byte[]) right);
        }
        return ((Comparable) left).compareTo(right);
    }

    /** {@code Math.min} and {@code Math.max} where Java has them, so that NaN wins; else by natural order. */
    static Object least(Object left, Object right) {
        if (left instanceof Double value) {
            return Math.min(value, (Double) right);
        } else if (left instanceof Float value) {
            return Math.min(value, (Float) right);
        }
        return compare(right, left) < 0 ? right : left;
    }

    static Object greatest(Object left, Object right) {
        if (left instanceof Double value) {
            return Math.max(value, (Double) right);
        } else if (left instanceof Float value) {
            return Math.max(value, (Float) right);
        }
        return compare(right, left) > 0 ? right : left;
    }

    private static byte[] toJson(Object value) {
        try {
            return value == null ? null : JSON.writeValueAsBytes(value);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    private static Object fromJson(byte[] bytes) {
        try {
            return bytes == null ? null : JSON.readTree(bytes);
        } catch (IOException problem) {
            throw new SerializationException(problem);
        }
    }
}
