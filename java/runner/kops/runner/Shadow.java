package kops.runner;

import java.io.IOException;
import java.io.Writer;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Collection;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;

/**
 * Runs a whole program under another application.id, with input up to given offsets, and without output to topics that are not its own.
 *
 * <p>It speaks with kops by files in a folder that both have: hello, when its KafkaStreams is constructed; then it waits for go, and then
 * tells its progress until there is close.
 */
public final class Shadow {
    private static final long LOOK_MS = 200;
    private static final Duration LONGEST_CLOSE = Duration.ofMinutes(10);
    private static final String CUT = "cut.";

    private final Path folder;
    private final ShadowClients clients;
    private final KafkaStreams streams;
    private final Collection<?> nodes;
    private final AtomicReference<Throwable> thrown = new AtomicReference<>();
    private long skipped;

    private Shadow(Path folder, ShadowClients clients, KafkaStreams streams, Collection<?> nodes) {
        this.folder = folder;
        this.clients = clients;
        this.streams = streams;
        this.nodes = nodes;
    }

    /**
     * Runs until kops says that it is enough.
     *
     * @param topology the program's org.apache.kafka.streams.Topology
     * @param config what it gave to KafkaStreams beside: Properties or a StreamsConfig
     * @param supplier its own KafkaClientSupplier; null: it has none
     * @param settings application.id and state.dir of the shadow, and where each partition of the input ends, as cut.TOPIC:PARTITION
     */
    public static void run(Object topology, Object config, Object supplier, Path folder, Properties settings) throws Exception {
        Properties given = configured(config, settings);
        Properties hello = new Properties();
        hello.setProperty("application", String.valueOf(given.get(StreamsConfig.APPLICATION_ID_CONFIG)));
        String id = settings.getProperty("shadow.id");
        given.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        KafkaClientSupplier own = supplier == null ? new DefaultKafkaClientSupplier() : (KafkaClientSupplier) supplier;
        ShadowClients clients = new ShadowClients(own, id + "-", cuts(settings));
        Calls.watchStreamThreads();
        KafkaStreams streams = new KafkaStreams((Topology) topology, given, clients.supplier());
        Object builder = Versions.get(topology, "internalTopologyBuilder");
        hello.putAll(Subtopology.facts(Subtopology.of(builder)));
        write(folder, "hello", hello);
        while (!Files.exists(folder.resolve("go"))) {
            Thread.sleep(LOOK_MS);
        }
        new Shadow(folder, clients, streams, ((Map<?, ?>) Versions.get(builder, "nodeFactories")).values()).run();
    }

    private static Properties configured(Object config, Properties settings) {
        Properties given = new Properties();
        if (config instanceof Properties) {
            given.putAll((Properties) config);
            ((Properties) config).stringPropertyNames().forEach(name -> given.put(name, ((Properties) config).getProperty(name)));
        } else {
            ((StreamsConfig) config).originals().forEach((name, value) -> {
                if (value != null) {
                    given.put(name, value);
                }
            });
        }
        given.put(StreamsConfig.STATE_DIR_CONFIG, settings.getProperty("shadow.state.dir"));
        given.put(StreamsConfig.CLIENT_ID_CONFIG, settings.getProperty("shadow.id"));
        given.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, "0");
        given.remove(StreamsConfig.APPLICATION_SERVER_CONFIG);
        given.remove("group.protocol"); // classic, where there is another one
        given.remove("__internal.override.topic.prefix__");
        return given;
    }

    private static Map<String, Long> cuts(Properties settings) {
        Map<String, Long> found = new HashMap<>();
        for (String name : settings.stringPropertyNames()) {
            if (name.startsWith(CUT)) {
                found.put(name.substring(CUT.length()), Long.parseLong(settings.getProperty(name)));
            }
        }
        return found;
    }

    private void run() throws Exception {
        StreamsUncaughtExceptionHandler handler = error -> {
            thrown.compareAndSet(null, error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        };
        streams.setUncaughtExceptionHandler(handler);
        KeptFields before = KeptFields.of(nodes);
        streams.start();
        while (!Files.exists(folder.resolve("close"))) {
            refuseFailed();
            write(folder, "progress", progress());
            Thread.sleep(LOOK_MS);
        }
        progress(); // counts what was dropped until now: its metrics go with its tasks
        if (!close()) {
            throw new IllegalStateException("it did not close within " + LONGEST_CLOSE.toMinutes() + " minutes");
        }
        refuseFailed();
        Properties facts = progress();
        facts.setProperty("calls", Calls.seen());
        facts.setProperty("initial_calls", Calls.initial());
        facts.setProperty("kept", String.join("\n", KeptFields.of(nodes).since(before)));
        Calls.schedules().forEach((place, count) -> facts.setProperty("schedules." + place, count.toString()));
        write(folder, "closed", facts);
    }

    /** Closes, and leaves the group, so that it can go at once; before 3.3 a setting of the consumer sees to that. */
    private boolean close() throws ReflectiveOperationException {
        for (Method method : KafkaStreams.class.getMethods()) {
            Class<?>[] given = method.getParameterTypes();
            if (!method.getName().equals("close") || given.length != 1 || !given[0].getSimpleName().equals("CloseOptions")) {
                continue;
            }
            Object options;
            if (given[0].isMemberClass()) {
                options = given[0].getConstructor().newInstance();
                given[0].getMethod("leaveGroup", boolean.class).invoke(options, true);
            } else if (Modifier.isPublic(given[0].getModifiers())) {
                Class<?> operation = Class.forName(given[0].getName() + "$GroupMembershipOperation", true, given[0].getClassLoader());
                Object leave = operation.getField("LEAVE_GROUP").get(null);
                options = given[0].getMethod("groupMembershipOperation", operation).invoke(null, leave);
            } else {
                continue;
            }
            Method timeout = given[0].getMethod(given[0].isMemberClass() ? "timeout" : "withTimeout", Duration.class);
            return (Boolean) method.invoke(streams, timeout.invoke(options, LONGEST_CLOSE));
        }
        return streams.close(LONGEST_CLOSE);
    }

    private void refuseFailed() throws Exception {
        Throwable error = thrown.get();
        if (error instanceof Exception) {
            throw (Exception) error;
        } else if (error != null) {
            throw new IllegalStateException(error);
        } else if (streams.state() == KafkaStreams.State.ERROR) {
            throw new IllegalStateException("its threads have ended");
        }
    }

    private Properties progress() throws InterruptedException {
        Properties facts = new Properties();
        facts.setProperty("state", streams.state().toString());
        clients.addTo(facts);
        skipped = Math.max(skipped, (long) dropped());
        facts.setProperty("skipped", Long.toString(skipped));
        return facts;
    }

    /** What the library counted, asked again while threads make tasks: with exactly_once they add their producers to a plain map. */
    private double dropped() throws InterruptedException {
        while (true) {
            try {
                return streams.metrics().values().stream()
                    .filter(each -> each.metricName().name().equals("dropped-records-total") && each.metricValue() instanceof Number)
                    .mapToDouble(each -> ((Number) each.metricValue()).doubleValue())
                    .sum();
            } catch (ConcurrentModificationException meanwhile) {
                Thread.sleep(LOOK_MS);
            }
        }
    }

    private static void write(Path folder, String name, Properties facts) throws IOException {
        Path part = folder.resolve(name + ".part");
        try (Writer writer = Files.newBufferedWriter(part)) {
            facts.store(writer, null);
        }
        Files.move(part, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    }
}
