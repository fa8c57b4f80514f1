import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The sum of the prices of each item, kept in the store {@code totals} and written to the topic {@code prices-totals}.
 *
 * <p>Reads {@code prices}: key, the id as text; value {"id": 1, "item": "laptop", "price": 2000.0}. A value without an item or a price is
 * left out. Arguments: BOOTSTRAP_SERVERS STATE_DIR [--guarantee at_least_once|exactly_once_v2] [--client-config FILE]. Prints READY when
 * it processes records; SIGTERM closes it and leaves the group at once.
 */
public final class PricesApplication {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private PricesApplication() {}

    static Topology topology() {
        Serializer<JsonNode> unused = (topic, value) -> {
            throw new SerializationException("prices are only read here");
        };
        Deserializer<JsonNode> json = (topic, bytes) -> {
            try {
                return bytes == null ? null : JSON.readTree(bytes);
            } catch (IOException problem) {
                throw new SerializationException("not JSON", problem);
            }
        };
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("prices", Consumed.with(Serdes.String(), Serdes.serdeFrom(unused, json)))
                .filter((id, price) -> price != null && price.hasNonNull("item") && price.hasNonNull("price"))
                .map((id, price) -> new KeyValue<>(price.get("item").asText(), price.get("price").asDouble()))
                .groupByKey(Grouped.with("totals", Serdes.String(), Serdes.Double()))
                .aggregate(() -> 0.0, (item, price, total) -> total + price, Materialized.<String, Double, KeyValueStore<Bytes, byte[]>>as("totals")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.Double()))
                .toStream()
                .to("prices-totals", Produced.with(Serdes.String(), Serdes.Double()));
        return builder.build();
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments.length < 2) {
            System.err.println("usage: PricesApplication BOOTSTRAP_SERVERS STATE_DIR [--guarantee GUARANTEE] [--client-config FILE]");
            System.exit(2);
        }
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "prices-app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0"); // every change is written, so the output is the same each time
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        for (int at = 2; at + 1 < arguments.length; at += 2) {
            switch (arguments[at]) {
                case "--guarantee" -> settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[at + 1]);
                case "--client-config" -> {
                    try (Reader reader = Files.newBufferedReader(Path.of(arguments[at + 1]))) {
                        settings.load(reader);
                    }
                }
                default -> throw new IllegalArgumentException("unknown option: " + arguments[at]);
            }
        }
        run(new KafkaStreams(topology(), settings));
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
        boolean clean = streams.close(
                CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP).withTimeout(PATIENCE));
        System.out.println(clean ? "STOPPED" : "FAILED to close in time");
        Runtime.getRuntime().halt(clean ? exit[0] : 1);
    }
}
