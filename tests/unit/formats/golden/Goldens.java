import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Utils;

/**
 * Writes murmur2.json and serializers.json beside itself, from Apache Kafka's own classes:
 * java -cp 'JARS/*' Goldens.java tests/unit/formats/golden
 */
public class Goldens {
    static final HexFormat HEX = HexFormat.of();
    static final List<String> lines = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        murmur2(folder.resolve("murmur2.json"));
        serializers(folder.resolve("serializers.json"));
    }

    static void murmur2(Path file) throws Exception {
        List<byte[]> keys = new ArrayList<>();
        for (String key : List.of("", "k", "21", "foobar", "a-little-bit-long-string", "a-little-bit-longer-string",
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", "laptop", "schlüssel", "鍵", "🔑", "\u0000")) {
            keys.add(key.getBytes(StandardCharsets.UTF_8));
        }
        Random random = new Random(3);
        for (int length = 0; length < 40; length++) keys.add(bytes(random, length));
        for (int i = 0; i < 60; i++) keys.add(bytes(random, random.nextInt(200)));
        for (byte[] key : keys) {
            int hash = Utils.murmur2(key);
            lines.add(String.format("{\"key\": \"%s\", \"murmur2\": %d, \"of_12\": %d, \"of_7\": %d}",
                HEX.formatHex(key), hash, Utils.toPositive(hash) % 12, Utils.toPositive(hash) % 7));
        }
        flush(file);
    }

    static byte[] bytes(Random random, int length) {
        byte[] key = new byte[length];
        random.nextBytes(key);
        return key;
    }

    static void serializers(Path file) throws Exception {
        for (String v : List.of("", "laptop", "Zürich", "鍵🔑")) add("string", "\"" + v + "\"", new StringSerializer().serialize("t", v));
        for (long v : new long[] {0, 1, -1, 6000, Long.MAX_VALUE, Long.MIN_VALUE}) add("long", v, new LongSerializer().serialize("t", v));
        for (int v : new int[] {0, 1, -1, 6000, Integer.MAX_VALUE, Integer.MIN_VALUE}) add("int", v, new IntegerSerializer().serialize("t", v));
        for (short v : new short[] {0, 1, -1, 6000, Short.MAX_VALUE, Short.MIN_VALUE}) add("short", v, new ShortSerializer().serialize("t", v));
        for (double v : new double[] {0, -0.0, 1, 0.1, -6000.5, 1e300, Double.MAX_VALUE, Double.MIN_VALUE}) add("double", v, new DoubleSerializer().serialize("t", v));
        for (double v : new double[] {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}) add("double", "\"" + v + "\"", new DoubleSerializer().serialize("t", v));
        for (float v : new float[] {0, -0.0f, 1, 0.5f, -6000.5f, Float.MAX_VALUE, Float.MIN_VALUE}) add("float", (double) v, new FloatSerializer().serialize("t", v));
        for (float v : new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) add("float", "\"" + v + "\"", new FloatSerializer().serialize("t", v));
        add("uuid", "\"123e4567-e89b-12d3-a456-426614174000\"", new UUIDSerializer().serialize("t", UUID.fromString("123e4567-e89b-12d3-a456-426614174000")));
        flush(file);
    }

    static void add(String format, Object value, byte[] data) {
        lines.add(String.format("{\"format\": \"%s\", \"value\": %s, \"bytes\": \"%s\"}", format, value, HEX.formatHex(data)));
    }

    static void flush(Path file) throws Exception {
        String how = "java -cp 'JARS/*' Goldens.java FOLDER, kafka-clients " + org.apache.kafka.common.utils.internals.AppInfoParser.getVersion();
        Files.writeString(file, "{\"how\": \"" + how + "\",\n\"cases\": [\n" + String.join(",\n", lines) + "\n]}\n");
        lines.clear();
    }
}
