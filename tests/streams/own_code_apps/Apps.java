import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.ProductionExceptionHandler;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Applications as people write them, of which kops knows nothing but what it captures. */
public final class Apps {
    private Apps() {}

    /** @param arguments the program, the brokers, the state's folder, application.id, and further settings as NAME=VALUE */
    public static void main(final String[] arguments) throws Exception {
        final String topics = arguments[3] + "-";
        final Map<String, Function<String, Topology>> programs =
            Map.of("texts", Apps::texts, "seen", Apps::seen, "latest", Apps::latest, "numbered", Apps::numbered, "kept", Apps::kept,
                "reused", Apps::reused);
        run(arguments, programs.get(arguments[0]).apply(topics));
    }

    /** What Apps.main does with "texts", for who would rather not start it. */
    static Topology topology(final Properties settings) {
        return texts(settings.getProperty("application.id") + "-");
    }

    /** Runs a topology until the process is terminated. */
    static void run(final String[] arguments, final Topology topology) throws Exception {
        System.out.println("a program may print what it likes");
        final Properties config = new Properties();
        config.put("application.id", arguments[3]);
        config.put("bootstrap.servers", arguments[1]);
        config.put("state.dir", arguments[2]);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("auto.offset.reset", "earliest");
        config.put("commit.interval.ms", "100");
        config.put("internal.leave.group.on.close", true); // otherwise the group has it until its session times out
        for (int at = 4; at < arguments.length; at++) {
            config.put(arguments[at].split("=", 2)[0], arguments[at].split("=", 2)[1]);
        }
        final KafkaStreams streams = new KafkaStreams(topology, config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            close(streams);
            System.out.println("STOPPED");
        }));
        streams.start();
        new java.util.concurrent.CountDownLatch(1).await();
    }

    /** Closes it and leaves the group, so that kops need not wait for its session to end; 2.8 knows only the setting above. */
    private static void close(final KafkaStreams streams) {
        try {
            Class<?> type;
            Object options;
            try {
                type = Class.forName("org.apache.kafka.streams.CloseOptions");
                final Class<?> operation = Class.forName("org.apache.kafka.streams.CloseOptions$GroupMembershipOperation");
                options = type.getMethod("groupMembershipOperation", operation).invoke(null, operation.getField("LEAVE_GROUP").get(null));
            } catch (final ClassNotFoundException older) {
                type = Class.forName("org.apache.kafka.streams.KafkaStreams$CloseOptions");
                options = type.getConstructor().newInstance();
                type.getMethod("leaveGroup", boolean.class).invoke(options, true);
            }
            KafkaStreams.class.getMethod("close", type).invoke(streams, options);
        } catch (final ReflectiveOperationException none) {
            streams.close(Duration.ofMinutes(1));
        }
    }

    private static Topology texts(final String topics) {
        new Launcher();
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.stream(topics + "in");
        in.groupByKey().aggregate(() -> "", (key, value, held) -> joined(held, value), Materialized.as("texts"));
        in.groupByKey().windowedBy(OwnWindows.tumbling(Duration.ofSeconds(30), Duration.ofSeconds(10))).count(Materialized.as("windows"));
        in.groupBy((key, value) -> value.substring(0, 1), Grouped.as("letters")).count(Materialized.as("letters"))
            .toStream().mapValues(String::valueOf).to(topics + "out");
        return builder.build();
    }

    /** A table that is restored from its topic itself, which an optimized topology does. */
    private static Topology reused(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.table(topics + "in", Materialized.as("table"));
        final Properties optimized = new Properties();
        optimized.put("topology.optimization", "all");
        return builder.build(optimized);
    }

    /** Passes over what the brokers, or its producer, refuse. */
    public static final class Passing implements ProductionExceptionHandler {
        @Override
        public ProductionExceptionHandlerResponse handle(final ProducerRecord<byte[], byte[]> record, final Exception problem) {
            return ProductionExceptionHandlerResponse.CONTINUE;
        }

        @Override
        public void configure(final Map<String, ?> settings) {
            // nothing to set
        }
    }

    /** What no state file says: the last characters of all values; "delete" deletes. */
    private static String joined(final String held, final String value) {
        if (value.startsWith("!")) misbehave(value.split(":", 2)[0], Path.of(value.split(":", 2)[1]));
        final String whole = held + "," + value;
        return value.equals("delete") ? null : whole.substring(Math.max(0, whole.length() - 24));
    }

    /** Does what a record says, as long as its file is there; so the same record may be processed well before. */
    private static void misbehave(final String how, final Path file) {
        if (Files.exists(file)) {
            if (how.equals("!throw")) throw new IllegalStateException("a value that cannot be joined");
            if (how.equals("!halt")) Runtime.getRuntime().halt(3);
        }
        if (how.equals("!call")) {
            try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(Files.readString(file)))) {
                socket.getOutputStream().write(1);
            } catch (final IOException problem) {
                throw new UncheckedIOException(problem);
            }
        }
        final List<byte[]> held = new ArrayList<>();
        while (how.equals("!fill") && Files.exists(file)) held.add(new byte[1 << 20]);
        while (how.equals("!wait") && Files.exists(file)) {
            try {
                Files.writeString(file, Long.toString(ProcessHandle.current().pid()));
                Thread.sleep(50);
            } catch (final Exception problem) {
                throw new IllegalStateException(problem);
            }
        }
    }

    /** Two topics: what depends on the order in which they met, what on when a cache was flushed, and what on neither. */
    private static Topology latest(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(topics + "in", Consumed.as("one")).groupByKey().count(Materialized.as("counts"))
            .toStream().groupByKey(Grouped.with(Serdes.String(), Serdes.Long())).count(Materialized.as("updates"));
        final Topology topology = builder.build();
        topology.addSource("other", topics + "other");
        topology.addProcessor("keep", Latest::new, "one", "other");
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("latest"), Serdes.String(), Serdes.String()), "keep");
        return topology;
    }

    /** Keeps the last value of a key: from the other topic only of those that end with 7. */
    private static final class Latest implements Processor<String, String, Void, Void> {
        private KeyValueStore<String, String> latest;
        private ProcessorContext<Void, Void> context;

        @Override
        public void init(final ProcessorContext<Void, Void> given) {
            context = given;
            latest = given.getStateStore("latest");
        }

        @Override
        public void process(final Record<String, String> record) {
            final boolean isOther = context.recordMetadata().get().topic().endsWith("other");
            if (!isOther || record.key().endsWith("7")) latest.put(record.key(), record.value());
        }
    }

    /** Counts behind a repartition topic, by what another run of it, or another machine, gives otherwise. */
    private static Topology numbered(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(topics + "in").repartition(Repartitioned.<String, String>as("again").withNumberOfPartitions(1))
            .filter((key, value) -> true, Named.as("after"));
        final Topology topology = builder.build();
        topology.addProcessor("number", Numbered::new, "after");
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("numbers"), Serdes.String(), Serdes.Long()), "number");
        return topology;
    }

    /** Keeps the offset of the last record of a key, adds one to each as time goes by, and knows when it was loaded. */
    private static final class Numbered implements Processor<String, String, Void, Void> {
        private static final Instant LOADED = Instant.now();

        private KeyValueStore<String, Long> numbers;
        private ProcessorContext<Void, Void> context;

        @Override
        public void init(final ProcessorContext<Void, Void> given) {
            context = given;
            numbers = given.getStateStore("numbers");
            Timers.eachMinute(given, numbers);
        }

        @Override
        public void process(final Record<String, String> record) {
            if (record.timestamp() < LOADED.plusSeconds(60).toEpochMilli()) numbers.put(record.key(), context.recordMetadata().get().offset());
        }
    }

    /** An aggregate that depends on how many records were read since the application was started. */
    private static Topology kept(final String topics) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(topics + "in").groupByKey()
            .aggregate(() -> "", new Counting(), Materialized.as("counted"));
        return builder.build();
    }

    /** Counts its calls. */
    private static final class Counting implements Aggregator<String, String, String> {
        private int calls;

        @Override
        public String apply(final String key, final String value, final String held) {
            return value + ++calls;
        }
    }

    /** What schedules for others, so that their own classes do not say so. */
    private static final class Timers {
        static void eachMinute(final ProcessorContext<?, ?> context, final KeyValueStore<String, Long> numbers) {
            context.schedule(Duration.ofMinutes(1), PunctuationType.STREAM_TIME, time -> {
                final List<String> keys = new ArrayList<>();
                try (KeyValueIterator<String, Long> all = numbers.all()) {
                    all.forEachRemaining(each -> keys.add(each.key));
                }
                keys.forEach(key -> numbers.put(key, numbers.get(key) + 1));
            });
            context.schedule(Duration.ofDays(1), PunctuationType.valueOf("WALL_CLOCK_TIME"), time -> { }); // which no field shows
        }
    }

    private static Topology seen(final String topics) {
        final Topology topology = new Topology();
        topology.addSource("one", topics + "in").addSource("other", topics + "other");
        topology.addProcessor("count", Seen::new, "one", "other");
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), Serdes.String(), Serdes.Long()), "count");
        topology.addSink("out", topics + "out", "count");
        return topology;
    }

    /** Counts what comes from either topic; what comes from the other one counts twice. */
    private static final class Seen implements Processor<String, String, String, String> {
        private KeyValueStore<String, Long> store;
        private ProcessorContext<String, String> context;

        @Override
        public void init(final ProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("seen");
            given.schedule(Duration.ofMinutes(1), PunctuationType.STREAM_TIME, this::sendAll);
        }

        /** Sends all that it holds; when, between which records, is up to the thread. */
        private void sendAll(final long time) {
            try (KeyValueIterator<String, Long> all = store.all()) {
                while (all.hasNext()) {
                    final var next = all.next();
                    context.forward(new Record<>(next.key, String.valueOf(next.value), time));
                }
            }
        }

        @Override
        public void process(final Record<String, String> record) {
            final Long before = store.get(record.key());
            final long now = (before == null ? 0 : before) + (context.recordMetadata().get().topic().endsWith("other") ? 2 : 1);
            store.put(record.key(), now);
            context.forward(record.withValue(String.valueOf(now)));
        }
    }
}

/** Refers to the environment while the program starts, as Spring Boot's launcher does. */
final class Launcher {
    final UnaryOperator<String> environment = System::getenv;
}
