import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** Keys: of windows, sessions, joins, buffers and foreign keys. Each has its writer, and its reader under the name with "_of". */
final class KeyFormats {
    static final String STATE = "state.internals.";
    static final String FOREIGN_KEYS = "kstream.internals.foreignkeyjoin.";
    static final Supplier<String> PSEUDO_TOPIC = () -> "pseudo";
    private static final String TIME_FIRST = STATE + "PrefixedWindowKeySchemas$TimeFirstWindowKeySchema";

    static final Map<String, FormatCalls.Call> CALLS = Map.ofEntries(
            Map.entry("window_key", a -> raw(Reflection.call(
                    STATE + "WindowKeySchema", "toStoreKeyBinary", Bytes.wrap(FormatCalls.bytes(a.get(0))), a.get(1).longValue(), a.get(2).intValue()))),
            Map.entry("window_key_of", a -> {
                byte[] data = FormatCalls.bytes(a.get(0));
                Windowed<?> window = (Windowed<?>) Reflection.call(STATE + "WindowKeySchema", "fromStoreBytesKey", data, 1L);
                return list(raw(window.key()), window.window().start(), Reflection.call(STATE + "WindowKeySchema", "extractStoreSequence", data));
            }),
            Map.entry("topic_window_key", a -> new TimeWindowedSerializer<>(new ByteArraySerializer()).serialize(
                    "t", new Windowed<>(FormatCalls.bytes(a.get(0)), new TimeWindow(a.get(1).longValue(), Long.MAX_VALUE)))),
            Map.entry("topic_window_key_of", a -> {
                Windowed<byte[]> window = new TimeWindowedDeserializer<>(new ByteArrayDeserializer(), 1L).deserialize("t", FormatCalls.bytes(a.get(0)));
                return list(window.key(), window.window().start());
            }),
            Map.entry("window_end", a -> ((TimeWindow) Reflection.call(
                    STATE + "WindowKeySchema", "timeWindowForSize", a.get(0).longValue(), a.get(1).longValue())).end()),
            Map.entry("session_key", a -> {
                byte[] key = FormatCalls.bytes(a.get(0));
                SessionWindow window = new SessionWindow(a.get(1).longValue(), a.get(2).longValue());
                byte[] stored = raw(Reflection.call(STATE + "SessionKeySchema", "toBinary", new Windowed<>(Bytes.wrap(key), window)));
                byte[] written = new SessionWindowedSerializer<>(new ByteArraySerializer()).serialize("t", new Windowed<>(key, window));
                return list(stored, written);
            }),
            Map.entry("session_key_of", a -> {
                Windowed<?> session = (Windowed<?>) Reflection.call(STATE + "SessionKeySchema", "from", Bytes.wrap(FormatCalls.bytes(a.get(0))));
                return list(raw(session.key()), session.window().start(), session.window().end());
            }),
            Map.entry("join_key", a -> {
                Object key = Reflection.call(STATE + "TimestampedKeyAndJoinSide", a.get(2).booleanValue() ? "makeLeft" : "makeRight",
                        FormatCalls.bytes(a.get(0)), a.get(1).longValue());
                return write(Reflection.make(STATE + "TimestampedKeyAndJoinSideSerializer", new ByteArraySerializer()), key);
            }),
            Map.entry("join_key_of", a -> {
                Object key = read(Reflection.make(STATE + "TimestampedKeyAndJoinSideDeserializer", new ByteArrayDeserializer()), FormatCalls.bytes(a.get(0)));
                return list(Reflection.on(key, "key"), Reflection.on(key, "timestamp"), Reflection.on(key, "isLeftSide"));
            }),
            Map.entry("buffer_key", a -> raw(Reflection.call(
                    TIME_FIRST, "toStoreKeyBinary", Bytes.wrap(FormatCalls.bytes(a.get(0))), a.get(1).longValue(), a.get(2).intValue()))),
            Map.entry("buffer_key_of", a -> {
                byte[] data = FormatCalls.bytes(a.get(0));
                return list(Reflection.call(TIME_FIRST, "extractStoreKeyBytes", data), Reflection.call(TIME_FIRST, "extractStoreTimestamp", data),
                        Reflection.call(TIME_FIRST, "extractStoreSequence", data));
            }),
            Map.entry("combined_key", a -> raw(Reflection.on(
                    combinedKeys(), "toBytes", FormatCalls.bytes(a.get(0)), FormatCalls.bytes(a.get(1)), new RecordHeaders()))),
            Map.entry("combined_key_of", a -> {
                Object key = Reflection.on(combinedKeys(), "fromBytes", Bytes.wrap(FormatCalls.bytes(a.get(0))), new RecordHeaders());
                return list(Reflection.on(key, "foreignKey"), Reflection.on(key, "primaryKey"));
            }));

    private KeyFormats() {}

    private static Object combinedKeys() throws Exception {
        return Reflection.make(FOREIGN_KEYS + "CombinedKeySchema", PSEUDO_TOPIC, Serdes.ByteArray(), PSEUDO_TOPIC, Serdes.ByteArray());
    }

    @SuppressWarnings("unchecked")
    static byte[] write(Object serializer, Object data) {
        return ((Serializer<Object>) serializer).serialize("t", new RecordHeaders(), data);
    }

    static Object read(Object deserializer, byte[] data) {
        return ((Deserializer<?>) deserializer).deserialize("t", new RecordHeaders(), data);
    }

    static byte[] raw(Object bytes) {
        return ((Bytes) bytes).get();
    }

    /** Base64 of what has a value, since Jackson writes arrays within lists of objects so too, but not buffers. */
    static List<Object> list(Object... parts) {
        List<Object> all = new ArrayList<>();
        for (Object part : parts) {
            all.add(part instanceof byte[] data ? Base64.getEncoder().encodeToString(data) : part);
        }
        return all;
    }

    static long[] hash(byte[] data) {
        if (data == null) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.wrap(data);
        return new long[] {buffer.getLong(), buffer.getLong()};
    }

    static byte[] hash(long[] parts) {
        return parts == null ? null : ByteBuffer.allocate(2 * Long.BYTES).putLong(parts[0]).putLong(parts[1]).array();
    }
}
