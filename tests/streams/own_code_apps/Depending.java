import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.text.SimpleDateFormat;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayDeque;
import java.util.Calendar;
import java.util.Date;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Small programs in one application, a store each: what they hold depends on what its name says, or on nothing but their records. */
public final class Depending {
    /** A class around an anonymous one. */
    private static long seenByOuter;
    private static final ThreadLocal<Long> LATEST = ThreadLocal.withInitial(() -> 0L);
    private static final Map<String, Pattern> PATTERNS = new ConcurrentHashMap<>();
    private static final ZoneId ZONE = ZoneId.of(System.getProperty("user.timezone", "UTC").isEmpty() ? "UTC" : ZoneId.systemDefault().getId());
    private static final UUID STARTED = UUID.randomUUID();

    private Depending() {}

    /** @param arguments the brokers, the state's folder, application.id */
    public static void main(final String[] arguments) throws Exception {
        final Properties config = new Properties();
        config.put("application.id", arguments[2]);
        config.put("bootstrap.servers", arguments[0]);
        config.put("state.dir", arguments[1]);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        new KafkaStreams(topology(arguments[2] + "-in"), config).start();
    }

    private static Topology topology(final String topic) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, byte[]> raw = builder.stream(topic, Consumed.with(Serdes.String(), Serdes.ByteArray()));
        final KStream<String, String> in = raw.mapValues(value -> new String(value, java.nio.charset.StandardCharsets.UTF_8));
        functions().forEach((name, function) -> in.mapValues(function::apply).groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .reduce((held, value) -> (held + value).substring(Math.max(0, held.length() + value.length() - 60)), Materialized.as(name)));
        raw.mapValues(value -> new String(value)).groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .reduce((held, value) -> value, Materialized.as("charset-read"));
        raw.mapValues(value -> Integer.toString(new String(value, java.nio.charset.StandardCharsets.UTF_8).getBytes().length))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String())).reduce((held, value) -> value, Materialized.as("charset-written"));
        pairs(builder, in);
        return builder.build();
    }

    /** What a value becomes, and what is kept of those before it. */
    private static Map<String, Function<String, String>> functions() {
        final Map<String, Function<String, String>> found = new LinkedHashMap<>();
        found.put("nothing-value", value -> value);
        found.put("nothing-clock", value -> System.currentTimeMillis() > 0 ? value : "never");
        found.put("nothing-cached", value -> PATTERNS.computeIfAbsent(value.substring(0, 1), Pattern::compile).matcher(value).replaceAll("x"));
        found.put("nothing-random", value -> ThreadLocalRandom.current().nextInt(3) < 3 ? value : "never");

        final AtomicReference<String> captured = new AtomicReference<>("");
        found.put("restarts-captured", value -> latest(value, captured));
        final LongSummaryStatistics statistics = new LongSummaryStatistics();
        found.put("restarts-statistics", value -> {
            statistics.accept(value.length());
            return Long.toString(statistics.getCount());
        });
        found.put("restarts-thread", value -> {
            LATEST.set(LATEST.get() + 1);
            return Long.toString(LATEST.get());
        });
        final ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        found.put("restarts-buffer", value -> Integer.toString(buffer.put((byte) value.length()).position()));
        found.put("restarts-outer", new Function<>() {
            @Override
            public String apply(final String value) {
                return Long.toString(++seenByOuter);
            }
        });
        final Deque<String> window = new ArrayDeque<>();
        found.put("restarts-window", value -> {
            window.add(value);
            if (window.size() > 5) window.remove();
            return Integer.toString(Objects.hash(window.toArray()));
        });
        found.put("restarts-property", value -> {
            final int count = Integer.getInteger("depending.count", 0) + 1;
            System.setProperty("depending.count", Integer.toString(count));
            return Integer.toString(count);
        });

        found.put("restarts-locale", value -> {
            final boolean isSet = Locale.getDefault(Locale.Category.DISPLAY).equals(Locale.ROOT);
            if (value.startsWith("3")) Locale.setDefault(Locale.Category.DISPLAY, Locale.ROOT);
            return String.valueOf(isSet);
        });

        found.put("zone-calendar", value -> Integer.toString(Calendar.getInstance().getTimeZone().getRawOffset()));
        found.put("zone-format", value -> new SimpleDateFormat("dd HH").format(new Date(1_000_000L * value.length())));
        found.put("zone-text", value -> new Date(1_000_000L * value.length()).toString());
        found.put("zone-printf", value -> String.format("%tH", 1_000_000L * value.length()));
        found.put("zone-initial", value -> Instant.ofEpochMilli(1_000_000L * value.length()).atZone(ZONE).toString());
        found.put("locale-case", value -> "TITLE".toLowerCase() + value.length());
        found.put("locale-number", value -> String.format("%.2f", value.length() / 3.0));
        found.put("charset-name", value -> Charset.defaultCharset().name());
        found.put("clock-date", value -> LocalDate.now(ZoneId.of("UTC")).toString());
        found.put("clock-reference", value -> dated(System::currentTimeMillis));
        found.put("chance-random", value -> Integer.toString(ThreadLocalRandom.current().nextInt(1_000_000)));
        found.put("chance-clock", value -> Long.toString(System.nanoTime()));
        found.put("chance-thread", value -> Thread.currentThread().getName());
        found.put("processors-count", value -> Integer.toString(Runtime.getRuntime().availableProcessors()));
        found.put("chance-started", value -> STARTED.toString());
        found.put("hash-order-set", value -> {
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
        return found;
    }

    private static String dated(final java.util.function.LongSupplier clock) {
        return Long.toString(clock.getAsLong() / 86_400_000);
    }

    /** Lets a value through only if it comes after the greatest so far. */
    private static String latest(final String value, final AtomicReference<String> captured) {
        if (value.compareTo(captured.get()) < 0) return "late";
        captured.set(value);
        return value;
    }

    /** Counts between start and end of a key, which are kept in a field; and numbers records of a repartition topic. */
    private static void pairs(final StreamsBuilder builder, final KStream<String, String> in) {
        for (final String name : List.of("restarts-pairs")) {
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.Long()));
        }
        in.process(Pairs::new, "restarts-pairs");
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("offsets-number"), Serdes.String(), Serdes.Long()));
        in.repartition(Repartitioned.<String, String>as("again").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .process(Numbered::new, "offsets-number");
    }

    private static final class Pairs extends ContextualProcessor<String, String, String, String> {
        private final Map<String, Long> open = new HashMap<>();

        @Override
        public void process(final Record<String, String> record) {
            final KeyValueStore<String, Long> store = context().getStateStore("restarts-pairs");
            final Long start = open.remove(record.key());
            if (start == null) open.put(record.key(), record.timestamp());
            else store.put(record.key(), Objects.requireNonNullElse(store.get(record.key()), 0L) + record.timestamp() - start);
        }
    }

    private static final class Numbered extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(final Record<String, String> record) {
            final KeyValueStore<String, Long> store = context().getStateStore("offsets-number");
            store.put(record.key(), context().recordMetadata().get().offset());
        }
    }
}
