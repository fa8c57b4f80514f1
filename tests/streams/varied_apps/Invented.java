import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.cache.CacheLoader;
import com.google.common.cache.LoadingCache;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Metrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.reactivex.rxjava3.subjects.PublishSubject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.SoftReference;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Calendar;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import javax.naming.Reference;
import javax.naming.StringRefAddr;
import javax.naming.spi.NamingManager;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.slf4j.MDC;

/** Programs of one application, a store each, by where they keep what they have seen, or what around them they read. */
public final class Invented {
    private static final int SOME = 3;
    private static final ThreadLocal<long[]> OF_THREAD = ThreadLocal.withInitial(() -> new long[1]);
    private static final String NOTE = "kops.invented.note";

    /** What ServiceLoader finds. */
    public static final class Service implements UnaryOperator<String> {
        private long called;

        @Override
        public String apply(final String value) {
            return value.substring(0, 1) + ++called;
        }
    }

    private enum Singleton {
        IT;

        private final Map<String, Long> seen = new HashMap<>();
    }

    private Invented() {}

    /** @param arguments as of Apps; the last one is config.file=PATH, of a file that one program writes */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-", Path.of(arguments[arguments.length - 1].split("=", 2)[1])));
    }

    private static Topology topology(final String topics, final Path file) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.stream(topics + "in", Consumed.with(Serdes.String(), Serdes.String()));
        final Map<String, Function<String, String>> stores = new TreeMap<>(ofLibraries());
        stores.putAll(ofTheJvm());
        stores.putAll(ofSurroundings());
        stores.put("file", value -> counted(file));
        stores.forEach((name, function) -> in.mapValues(function::apply).groupByKey()
            .reduce((held, value) -> (held + "," + value).substring(Math.max(0, held.length() + value.length() - 40)), Materialized.as(name)));
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("context"), Serdes.String(), Serdes.String()));
        in.process(OfContext::new, "context");
        return builder.build();
    }

    private static Map<String, Function<String, String>> ofLibraries() {
        final Map<String, Function<String, String>> stores = new HashMap<>();
        final Cache<String, Long> guava = CacheBuilder.newBuilder().maximumSize(SOME).concurrencyLevel(1).build();
        stores.put("guava", value -> {
            final Long before = guava.getIfPresent(value.substring(0, 1));
            guava.put(value.substring(0, 1), before == null ? 1 : before + 1);
            return String.valueOf(before);
        });
        final LoadingCache<String, Integer> loading = CacheBuilder.newBuilder().maximumSize(SOME).build(CacheLoader.from(String::length));
        stores.put("pure-guava", value -> value + loading.getUnchecked(value));
        final com.github.benmanes.caffeine.cache.Cache<String, Long> caffeine = Caffeine.newBuilder().build();
        stores.put("caffeine", value -> String.valueOf(caffeine.asMap().merge(value.substring(0, 1), 1L, Long::sum)));
        final PublishSubject<Integer> lengths = PublishSubject.create();
        final AtomicLong sum = new AtomicLong();
        lengths.scan(0, (held, length) -> (held + length) % 97).subscribe(sum::set);
        stores.put("rx", value -> {
            lengths.onNext(value.length());
            return String.valueOf(sum);
        });
        Metrics.addRegistry(new SimpleMeterRegistry());
        final Counter counter = Metrics.counter("invented");
        stores.put("micrometer", value -> {
            counter.increment();
            return String.valueOf((long) counter.count());
        });
        final Counter ignored = Metrics.counter("ignored");
        stores.put("pure-micrometer", value -> {
            ignored.increment();
            return value;
        });
        stores.put("mdc", value -> {
            final String before = MDC.get("before");
            MDC.put("before", value);
            return String.valueOf(before);
        });
        @SuppressWarnings("unchecked")
        final UnaryOperator<String> service = ServiceLoader.load(UnaryOperator.class).findFirst().orElseThrow();
        stores.put("service", service::apply);
        return stores;
    }

    private static Map<String, Function<String, String>> ofTheJvm() {
        final Map<String, Function<String, String>> stores = new HashMap<>();
        stores.put("enum", value -> String.valueOf(Singleton.IT.seen.merge(value.substring(0, 1), 1L, Long::sum)));
        stores.put("thread-local", value -> String.valueOf(++OF_THREAD.get()[0]));
        stores.put("property", value -> System.setProperty(NOTE, value) + "");
        stores.put("locale-set", value -> {
            if (value.startsWith("d")) Locale.setDefault(Locale.GERMANY);
            return String.format("%,d", 1000);
        });
        stores.put("zone-set", value -> {
            final int hour = Calendar.getInstance().getTimeZone().getRawOffset();
            if (value.startsWith("e")) TimeZone.setDefault(TimeZone.getTimeZone("Asia/Tokyo"));
            return String.valueOf(hour);
        });
        stores.put("logger", value -> {
            final Logger logger = Logger.getLogger("kops.invented");
            final Level before = logger.getLevel();
            logger.setLevel(value.startsWith("f") ? Level.FINE : before);
            return String.valueOf(before);
        });
        stores.put("bean", value -> {
            ManagementFactory.getMemoryMXBean().setVerbose(false);
            final boolean before = ManagementFactory.getThreadMXBean().isThreadCpuTimeEnabled();
            ManagementFactory.getThreadMXBean().setThreadCpuTimeEnabled(!before);
            return String.valueOf(before);
        });
        final SoftReference<AtomicLong> soft = new SoftReference<>(new AtomicLong());
        stores.put("soft", value -> String.valueOf(soft.get() == null ? 0 : soft.get().incrementAndGet()));
        final Map<String, Object> names = Collections.synchronizedMap(new LinkedHashMap<>());
        stores.put("jndi", value -> named(names, value));
        return stores;
    }

    private static Map<String, Function<String, String>> ofSurroundings() {
        final Map<String, Function<String, String>> stores = new HashMap<>();
        stores.put("zone", value -> TimeZone.getDefault().getID() + System.getProperty("user.timezone"));
        stores.put("charset", value -> Charset.defaultCharset().name());
        stores.put("hour", value -> Instant.now().truncatedTo(ChronoUnit.HOURS).toString());
        stores.put("identity", value -> Integer.toHexString(new Object().hashCode() & 0xff));
        stores.put("set-order", value -> {
            final Set<Object> set = new HashSet<>();
            final Map<Object, Integer> numbers = new HashMap<>();
            for (int at = 0; at < 9; at++) {
                final Object made = new Object();
                set.add(made);
                numbers.put(made, at);
            }
            final StringBuilder text = new StringBuilder();
            set.forEach(each -> text.append(numbers.get(each)));
            return text.toString();
        });
        stores.put("immutable-order", value -> String.join("", Set.of("a", "b", "c", "d", "e", "f", "g")));
        stores.put("uuid", value -> UUID.randomUUID().toString().substring(0, 8));
        stores.put("host", value -> host());
        stores.put("pid", value -> String.valueOf(ProcessHandle.current().pid()));
        stores.put("processors", value -> String.valueOf(Runtime.getRuntime().availableProcessors()));
        stores.put("memory", value -> String.valueOf(Runtime.getRuntime().maxMemory() >> 20));
        stores.put("parallel", value -> String.valueOf(IntStream.range(0, 999).parallel().mapToDouble(each -> 1.0 / (each + value.length()))
            .boxed().reduce(0.0, Double::sum)));
        stores.put("thread-name", value -> Thread.currentThread().getName());
        stores.put("uptime", value -> String.valueOf(ManagementFactory.getRuntimeMXBean().getUptime() / 3_600_000));
        return stores;
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (final UnknownHostException none) {
            return "none";
        }
    }

    private static String named(final Map<String, Object> names, final String value) {
        try {
            final Reference reference = new Reference(String.class.getName(), new StringRefAddr("before", value));
            final Object before = names.put("reference", NamingManager.getObjectInstance(reference, null, null, null));
            return before instanceof Reference ? (String) ((Reference) before).get("before").getContent() : "none";
        } catch (final Exception problem) {
            return problem.getClass().getName();
        }
    }

    private static String counted(final Path file) {
        try {
            final String text = Files.exists(file) ? Files.readString(file) : ""; // other processes of it may be writing
            final long count = text.isBlank() ? 1 : Long.parseLong(text) + 1;
            Files.writeString(file, Long.toString(count));
            return Long.toString(count);
        } catch (final IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    /** What the library says of itself. */
    private static final class OfContext extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(final Record<String, String> record) {
            final KeyValueStore<String, String> store = context().getStateStore("context");
            store.put(record.key() + "-folder", context().stateDir().toString());
            store.put(record.key() + "-hour", String.valueOf(context().currentSystemTimeMs() / 3_600_000));
            store.put(record.key() + "-task", context().taskId().toString());
        }
    }
}
