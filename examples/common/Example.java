import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * What the examples have in common: how a topology becomes an application that runs until SIGTERM.
 *
 * <p>Arguments: BOOTSTRAP_SERVERS STATE_DIR [--prefix PREFIX] [--config KEY=VALUE]... [--client-config FILE]. The prefix goes before the
 * application's id and its topics' names, so that two of the same can run on one Kafka. Prints READY when it processes records.
 */
final class Example {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final String applicationId;
    private final Function<UnaryOperator<String>, Topology> topology;

    /** An application; the topology is given what makes the name of a topic. */
    Example(String applicationId, Function<UnaryOperator<String>, Topology> topology) {
        this.applicationId = applicationId;
        this.topology = topology;
    }

    /** The application as its arguments want it, not started yet. */
    KafkaStreams streams(String... arguments) throws IOException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0"); // every change is written, so the output is the same each time
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        String prefix = "";
        for (int at = 2; at + 1 < arguments.length; at += 2) {
            String value = arguments[at + 1];
            switch (arguments[at]) {
                case "--prefix" -> prefix = value;
                case "--config" -> settings.put(value.substring(0, value.indexOf('=')), value.substring(value.indexOf('=') + 1));
                case "--client-config" -> {
                    try (Reader reader = Files.newBufferedReader(Path.of(value))) {
                        settings.load(reader);
                    }
                }
                default -> throw new IllegalArgumentException("unknown option: " + arguments[at]);
            }
        }
        String start = prefix;
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, start + applicationId);
        return new KafkaStreams(topology.apply(name -> start + name), settings);
    }

    /** A key-value store with a name, of text keys. */
    static <V> Materialized<String, V, KeyValueStore<Bytes, byte[]>> store(String name, Serde<V> values) {
        return Materialized.<String, V, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde(values);
    }

    /** Close it; it commits, and leaves its group at once. */
    static boolean close(KafkaStreams streams) {
        return streams.close(CloseOptions.groupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP).withTimeout(PATIENCE));
    }

    /** Print what {@code describe} prints, or run until SIGTERM. */
    void main(String... arguments) throws IOException, InterruptedException {
        if (arguments.length == 1 && arguments[0].equals("describe")) {
            System.out.print(topology.apply(UnaryOperator.identity()).describe());
            return;
        }
        if (arguments.length < 2) {
            System.err.println("usage: BOOTSTRAP_SERVERS STATE_DIR [--prefix PREFIX] [--config KEY=VALUE]... [--client-config FILE]");
            System.err.println("       describe");
            System.exit(2);
        }
        run(streams(arguments));
    }

    private static void run(KafkaStreams streams) throws InterruptedException {
        CountDownLatch closing = new CountDownLatch(1);
        Thread main = Thread.currentThread();
        int[] exit = {0};
        streams.setUncaughtExceptionHandler(problem -> {
            System.err.println("FAILED " + problem);
            exit[0] = 1;
            closing.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("READY");
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            closing.countDown();
            try {
                main.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        streams.start();
        closing.await();
        boolean clean = close(streams);
        System.out.println(clean ? "STOPPED" : "FAILED to close in time");
        Runtime.getRuntime().halt(clean ? exit[0] : 1);
    }
}
