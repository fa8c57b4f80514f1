import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyDescription.Source;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * A real application of a {@link Topologies} specification.
 *
 * <p>Arguments: BOOTSTRAP_SERVERS SPEC_FILE STATE_DIR, then any of --application ID, --guarantee at_least_once|exactly_once_v2,
 * --threads N, --config name=value, --client-config FILE, --after MILLISECONDS (which it waits before it starts), --stop-when-idle; then
 * --and, and the same for a further application beside it.
 * Prints READY when one runs, CAUGHT_UP when its committed offsets have reached the end of its topics, FAILED and the cause, and STOPPED
 * after a clean close; SIGTERM closes all and leaves their groups. Exits when all are closed, with 1 when one failed.
 *
 * <p>With --serve alone it takes such arguments from standard input, a JSON array in each line, prints DONE and the exit code after each
 * run, and ends with its input: starting a JVM takes longer than most runs.
 */
public final class StreamsRunner {
    private static final Duration PATIENCE = Duration.ofSeconds(200);
    private static final long POLL_MILLIS = 150; // four requests each, for each application

    private StreamsRunner() {}

    public static void main(String[] arguments) throws Exception {
        if (!Arrays.equals(arguments, new String[] {"--serve"})) {
            Runtime.getRuntime().halt(runAll(arguments, true)); // the shutdown hooks wait for this thread, so this thread ends the process
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            say("DONE " + runAll(Codecs.JSON.readValue(line, String[].class), false));
        }
        Runtime.getRuntime().halt(0);
    }

    /** Runs all applications of these arguments; with a shutdown hook for each, where the process ends with this thread. */
    private static int runAll(String[] arguments, boolean hooks) throws Exception {
        Thread main = hooks ? Thread.currentThread() : null;
        List<FutureTask<Integer>> running = new ArrayList<>();
        int from = 0;
        for (int to = 0; to <= arguments.length; to++) {
            if (to == arguments.length || arguments[to].equals("--and")) {
                String[] one = Arrays.copyOfRange(arguments, from, to);
                running.add(new FutureTask<>(() -> runOne(one, main)));
                from = to + 1;
            }
        }
        running.forEach(application -> new Thread(application).start());
        int exit = 0;
        for (FutureTask<Integer> application : running) {
            try {
                exit |= application.get();
            } catch (ExecutionException problem) {
                problem.getCause().printStackTrace();
                exit = 1;
            }
        }
        return exit;
    }

    private static int runOne(String[] arguments, Thread main) throws Exception {
        Properties settings = new Properties();
        JsonNode spec = Codecs.JSON.readTree(Files.readString(Path.of(arguments[1])));
        settings.putAll(Topologies.settings(spec));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        boolean stopWhenIdle = false;
        for (int at = 3; at < arguments.length; at++) {
            switch (arguments[at]) {
                case "--application" -> settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[++at]);
                case "--guarantee" -> settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[++at]);
                case "--threads" -> settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[++at]);
                case "--config" -> {
                    String[] pair = arguments[++at].split("=", 2);
                    settings.put(pair[0], pair[1]);
                }
                case "--client-config" -> {
                    try (var reader = Files.newBufferedReader(Path.of(arguments[++at]))) {
                        settings.load(reader);
                    }
                }
                case "--after" -> Thread.sleep(Long.parseLong(arguments[++at]));
                case "--stop-when-idle" -> stopWhenIdle = true;
                default -> throw new IllegalArgumentException("unknown option: " + arguments[at]);
            }
        }
        return run(spec, settings, stopWhenIdle, main);
    }

    private static int run(JsonNode spec, Properties settings, boolean stopWhenIdle, Thread main) throws Exception {
        KafkaStreams streams = new KafkaStreams(Topologies.build(spec), settings);
        CountDownLatch closing = new CountDownLatch(1);
        int[] exit = {0};
        streams.setUncaughtExceptionHandler(problem -> {
            say("FAILED " + problem);
            exit[0] = 1;
            closing.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                say("READY");
            }
        });
        if (main != null) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                closing.countDown();
                try {
                    main.join(PATIENCE.toMillis());
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        streams.start();
        watch(streams, settings, spec, closing, stopWhenIdle);
        boolean clean = close(streams);
        say(clean ? "STOPPED" : "FAILED to close in time");
        return clean ? exit[0] : 1;
    }

    /** Closes it and leaves the group; the options have been a class of their own since 4.2 (KIP-1153). */
    private static boolean close(KafkaStreams streams) throws Exception {
        Class<?> type;
        Object options;
        try {
            type = Class.forName("org.apache.kafka.streams.CloseOptions");
            Class<?> operation = Class.forName("org.apache.kafka.streams.CloseOptions$GroupMembershipOperation");
            options = type.getMethod("timeout", Duration.class).invoke(null, PATIENCE);
            type.getMethod("withGroupMembershipOperation", operation).invoke(options, operation.getField("LEAVE_GROUP").get(null));
        } catch (ClassNotFoundException older) {
            type = Class.forName("org.apache.kafka.streams.KafkaStreams$CloseOptions");
            options = type.getConstructor().newInstance();
            type.getMethod("timeout", Duration.class).invoke(options, PATIENCE);
            type.getMethod("leaveGroup", boolean.class).invoke(options, true);
        }
        return (boolean) KafkaStreams.class.getMethod("close", type).invoke(streams, options);
    }

    /** Says CAUGHT_UP each time the application reaches the end of its topics after having been behind. */
    private static void watch(KafkaStreams streams, Properties settings, JsonNode spec, CountDownLatch closing, boolean stopWhenIdle)
            throws Exception {
        Properties adminSettings = new Properties();
        settings.forEach((name, value) -> {
            if (!name.equals(StreamsConfig.APPLICATION_ID_CONFIG)) {
                adminSettings.put(name, value);
            }
        });
        String group = settings.getProperty(StreamsConfig.APPLICATION_ID_CONFIG);
        Set<String> topics = Topologies.build(spec).describe().subtopologies().stream()
                .flatMap(part -> part.nodes().stream())
                .filter(node -> node instanceof Source)
                .flatMap(node -> ((Source) node).topicSet().stream())
                .map(topic -> topic.endsWith("-repartition") || topic.startsWith("KTABLE-FK-JOIN-") ? group + "-" + topic : topic)
                .collect(Collectors.toSet());
        boolean reported = false;
        try (Admin admin = Admin.create(adminSettings)) {
            while (!closing.await(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
                boolean caughtUp = streams.state() == KafkaStreams.State.RUNNING && lag(admin, group, topics) == 0;
                if (caughtUp && !reported) {
                    say("CAUGHT_UP");
                    if (stopWhenIdle) {
                        return;
                    }
                }
                reported = caughtUp;
            }
        }
    }

    /** Records between the committed offsets and the ends; a repartition topic that is not there yet is a lag of one. */
    private static long lag(Admin admin, String group, Set<String> topics) throws InterruptedException {
        try {
            // First what is committed, then the ends: all that was forwarded before the commit is then counted.
            Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            List<TopicPartition> partitions = new ArrayList<>();
            admin.describeTopics(topics).allTopicNames().get().forEach((name, topic) ->
                    topic.partitions().forEach(partition -> partitions.add(new TopicPartition(name, partition.partition()))));
            Map<TopicPartition, OffsetSpec> earliest = new HashMap<>();
            Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
            partitions.forEach(partition -> {
                earliest.put(partition, OffsetSpec.earliest());
                latest.put(partition, OffsetSpec.latest());
            });
            Map<TopicPartition, ListOffsetsResultInfo> starts = admin.listOffsets(earliest).all().get();
            Map<TopicPartition, ListOffsetsResultInfo> ends = admin.listOffsets(latest).all().get();
            return partitions.stream().mapToLong(partition -> {
                OffsetAndMetadata at = committed.get(partition);
                return ends.get(partition).offset() - (at == null ? starts.get(partition).offset() : at.offset());
            }).sum();
        } catch (ExecutionException notYet) {
            return 1;
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
