import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Runs the applications of the examples in one JVM, since a JVM each would take most of the tests' time.
 *
 * <p>Reads lines of fields parted by tabs: {@code start ID CLASS ARGUMENT...}, {@code stop ID}, {@code locate ID STORE KEY}. Answers a line
 * each: {@code READY ID} when it processes records, {@code STOPPED ID} when it is closed, {@code FAILED ID WHY} when it stops by itself,
 * {@code LOCATED ID PARTITION HOST:PORT} of the instance that holds the key.
 */
public final class ExamplesHost {
    private static final Map<String, KafkaStreams> RUNNING = new ConcurrentHashMap<>();

    private static final PrintStream ANSWERS = System.out;

    private ExamplesHost() {}

    public static void main(String[] unused) throws Exception {
        System.setOut(System.err); // what the applications log is not an answer
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] fields = line.split("\t");
            new Thread(() -> obey(fields)).start();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void obey(String[] fields) {
        String id = fields[1];
        try {
            if (fields[0].equals("start")) {
                start(id, fields[2], Arrays.copyOfRange(fields, 3, fields.length));
            } else if (fields[0].equals("locate")) {
                KeyQueryMetadata found = RUNNING.get(id).queryMetadataForKey(fields[2], fields[3], new StringSerializer());
                answer("LOCATED", id, found.partition() + " " + found.activeHost().host() + ":" + found.activeHost().port());
            } else {
                answer(Example.close(RUNNING.remove(id)) ? "STOPPED" : "FAILED", id, "to close in time");
            }
        } catch (Exception problem) {
            answer("FAILED", id, problem.toString());
        }
    }

    private static void start(String id, String name, String[] arguments) throws Exception {
        Field example = Class.forName(name).getDeclaredField("EXAMPLE");
        KafkaStreams streams = ((Example) example.get(null)).streams(arguments);
        streams.setUncaughtExceptionHandler(problem -> {
            answer("FAILED", id, problem.toString());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                answer("READY", id, "");
            }
        });
        RUNNING.put(id, streams);
        streams.start();
    }

    private static synchronized void answer(String what, String id, String why) {
        ANSWERS.println(what + "\t" + id + "\t" + why.replaceAll("\\s+", " "));
    }
}
