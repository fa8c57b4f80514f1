import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;

/** The settings of an application, from a file, and its life: until it is terminated. */
public final class Given {
    private Given() {}

    public static Properties settings(final String... arguments) throws Exception {
        final Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        return settings;
    }

    public static void run(final Topology topology, final Properties settings) throws Exception {
        final KafkaStreams streams = new KafkaStreams(topology, settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(streams)));
        streams.setUncaughtExceptionHandler(error -> {
            Runtime.getRuntime().halt(1); // a test need not wait for it
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        new CountDownLatch(1).await();
    }

    /** Closes it and leaves the group, which else keeps the member until its session times out; before 4.2, a setting says so. */
    private static void close(final KafkaStreams streams) {
        try {
            final Class<?> options = Class.forName("org.apache.kafka.streams.CloseOptions");
            final Class<?> operation = Class.forName("org.apache.kafka.streams.CloseOptions$GroupMembershipOperation");
            final Object leave = options.getMethod("groupMembershipOperation", operation).invoke(null, operation.getField("LEAVE_GROUP").get(null));
            KafkaStreams.class.getMethod("close", options).invoke(streams, leave);
        } catch (final ReflectiveOperationException older) {
            streams.close(Duration.ofMinutes(1));
        }
    }
}
