import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A number for each record, from what a program keeps between records or reads around it; {@code "effect"} says what becomes of it:
 * {@code filter} lets no record through whose number a third divides, {@code add} adds it to the value.
 */
final class Keeping {
    private static final AtomicLong COUNT = new AtomicLong();
    private static final Map<String, Long> OF_KEYS = new ConcurrentHashMap<>();
    private static final ThreadLocal<long[]> OF_THREAD = ThreadLocal.withInitial(() -> new long[1]);
    private static final int SOME = 5;

    interface Number {
        long of(String key, String value);
    }

    private enum Singleton {
        IT;

        private final AtomicLong longest = new AtomicLong();
    }

    private Keeping() {}

    static Number of(JsonNode spec) {
        AtomicLong count = new AtomicLong();
        AtomicReference<String> last = new AtomicReference<>("");
        Map<String, Long> seen = new ConcurrentHashMap<>();
        Set<String> values = Collections.synchronizedSet(new HashSet<>());
        Map<String, Long> limited = Collections.synchronizedMap(new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
                return size() > SOME;
            }
        });
        String kind = spec.get("kind").textValue();
        return switch (kind) {
            case "counter" -> (key, value) -> count.incrementAndGet();
            case "map" -> (key, value) -> seen.merge(key, 1L, Long::sum);
            case "last" -> (key, value) -> last.getAndSet(value).length();
            case "greatest" -> (key, value) -> value.compareTo(last.getAndAccumulate(value, (one, two) -> one.compareTo(two) > 0 ? one : two)) > 0 ? 1 : 3;
            case "cache" -> (key, value) -> limited.merge(key, 1L, Long::sum);
            case "seen" -> (key, value) -> values.add(key + value.length()) ? 1 : 3;
            case "first" -> (key, value) -> last.updateAndGet(old -> old.isEmpty() ? value : old).hashCode() % 9;
            case "static" -> (key, value) -> COUNT.incrementAndGet();
            case "static-map" -> (key, value) -> OF_KEYS.merge(key, 1L, Long::sum);
            case "singleton" -> (key, value) -> Singleton.IT.longest.accumulateAndGet(value.length(), Math::max);
            case "thread" -> (key, value) -> ++OF_THREAD.get()[0];
            case "written" -> (key, value) -> written();
            case "memo" -> (key, value) -> seen.computeIfAbsent(value, each -> (long) each.length());
            case "metric" -> (key, value) -> count.incrementAndGet() > 0 ? value.length() : 0;
            case "property" -> (key, value) -> Long.getLong("kops.generated", 0) + value.length();
            case "variable" -> (key, value) -> number(System.getenv("KOPS_GENERATED")) + value.length();
            case "file" -> {
                long number = number(read(spec.get("file").textValue()));
                yield (key, value) -> number + value.length();
            }
            case "zone" -> (key, value) -> Instant.ofEpochSecond(36_000L * value.length()).atZone(ZoneId.systemDefault()).getHour();
            case "locale" -> (key, value) -> String.format("%,d", 1_000_000L * value.length()).codePoints().sum();
            case "charset" -> (key, value) -> new String("Zürich".getBytes(StandardCharsets.UTF_8), Charset.defaultCharset()).length();
            case "day" -> (key, value) -> System.currentTimeMillis() / 86_400_000 + value.length();
            case "nanos" -> (key, value) -> System.nanoTime() / 1000 % 100;
            case "random" -> (key, value) -> ThreadLocalRandom.current().nextInt(100);
            case "rarely" -> (key, value) -> ThreadLocalRandom.current().nextInt(40) == 0 ? 3 : 1;
            case "identity" -> (key, value) -> System.identityHashCode(new Object()) % 100;
            default -> throw new IllegalArgumentException("nothing is kept or read so: " + kind);
        };
    }

    private static long number(String text) {
        return text == null || text.isBlank() ? 0 : Long.parseLong(text.strip());
    }

    private static String read(String path) {
        try {
            return Files.exists(Path.of(path)) ? Files.readString(Path.of(path)) : "";
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    private static synchronized long written() {
        long count = Long.getLong("kops.generated.count", 0) + 1;
        System.setProperty("kops.generated.count", Long.toString(count));
        return count;
    }
}
