import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * A real application with a store of every type that has a changelog, which answers from its stores once it has read its topics.
 *
 * <p>Arguments: BOOTSTRAP_SERVERS APPLICATION STATE_DIR KEY... Topics: APPLICATION-left, -right, -people, -departments, -rooms, texts all.
 * Prints one line of JSON: what interactive queries find in the stores, for the keys where they need them.
 */
public final class EveryStore {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration LONG = Duration.ofDays(2);

    private EveryStore() {}

    public static void main(String[] arguments) throws Exception {
        String application = arguments[1];
        List<String> keys = List.of(arguments).subList(3, arguments.length);
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put("auto.offset.reset", "earliest");
        List<String> topics = List.of(application + "-left", application + "-right", application + "-people", application + "-departments", application + "-rooms");
        try (KafkaStreams streams = new KafkaStreams(topology(application).build(), settings); Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            streams.start();
            while (!caughtUp(admin, application, topics) || streams.state() != KafkaStreams.State.RUNNING) {
                if (streams.state() == KafkaStreams.State.ERROR) {
                    throw new IllegalStateException("the application has failed");
                }
                Thread.sleep(50);
            }
            System.out.println(JSON.writeValueAsString(answers(streams, keys)));
            streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP).withTimeout(Duration.ofSeconds(30)));
        }
    }

    private static StreamsBuilder topology(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> left = builder.stream(application + "-left");
        KStream<String, String> right = builder.stream(application + "-right");
        KGroupedStream<String, String> grouped = left.groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        KTable<String, Long> counts = grouped.count(Materialized.as("counts"));
        counts.suppress(Suppressed.<String>untilTimeLimit(Duration.ofDays(3650), Suppressed.BufferConfig.unbounded()).withName("waiting"));
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1))).count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("per-minute").withRetention(LONG))
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closing"));
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(30))).count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("sessions").withRetention(LONG))
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("ending"));
        left.leftJoin(right, (one, other) -> one + other, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(10)),
                StreamJoined.<String, String, String>as("pairs").withName("pairs"));
        KTable<String, String> people = builder.table(application + "-people",
                Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("homes", Duration.ofDays(3650))));
        left.join(people, (value, home) -> value + home, Joined.<String, String, String>as("visits").withGracePeriod(Duration.ofDays(3650)));
        KTable<String, String> members = builder.table(application + "-departments", Consumed.as("members"));
        KTable<String, String> rooms = builder.table(application + "-rooms", Consumed.as("rooms"));
        members.join(rooms, department -> department, (department, room) -> department + room, TableJoined.as("where"), Materialized.as("located"));
        return builder;
    }

    private static boolean caughtUp(Admin admin, String group, List<String> topics) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Set<TopicPartition> partitions = admin.describeTopics(topics).allTopicNames().get().values().stream()
                .flatMap(topic -> topic.partitions().stream().map(one -> new TopicPartition(topic.name(), one.partition()))).collect(Collectors.toSet());
        var ends = admin.listOffsets(partitions.stream().collect(Collectors.toMap(one -> one, one -> OffsetSpec.latest()))).all().get();
        return partitions.stream().allMatch(one -> ends.get(one).offset() == 0 || (committed.get(one) != null && committed.get(one).offset() == ends.get(one).offset()));
    }

    private static ObjectNode answers(KafkaStreams streams, List<String> keys) {
        ObjectNode found = JSON.createObjectNode();
        ArrayNode counts = found.putArray("counts");
        try (var all = store(streams, "counts", QueryableStoreTypes.<String, Long>timestampedKeyValueStore()).all()) {
            all.forEachRemaining(one -> counts.addArray().add(one.key).add(one.value.value()).add(one.value.timestamp()));
        }
        ArrayNode windows = found.putArray("per-minute");
        try (var all = store(streams, "per-minute", QueryableStoreTypes.<String, Long>timestampedWindowStore()).all()) {
            all.forEachRemaining(one -> windows.addArray().add(one.key.key()).add(one.key.window().start()).add(one.key.window().end())
                    .add(one.value.value()).add(one.value.timestamp()));
        }
        ArrayNode sessions = found.putArray("sessions");
        ArrayNode homes = found.putArray("homes");
        for (String key : keys) {
            try (var all = store(streams, "sessions", QueryableStoreTypes.<String, Long>sessionStore()).fetch(key)) {
                all.forEachRemaining(one -> sessions.addArray().add(key).add(one.key.window().start()).add(one.key.window().end()).add(one.value));
            }
            MultiVersionedKeyQuery<String, String> query =
                    MultiVersionedKeyQuery.<String, String>withKey(key).fromTime(Instant.EPOCH).toTime(Instant.ofEpochMilli(Long.MAX_VALUE)).withAscendingTimestamps();
            streams.query(StateQueryRequest.inStore("homes").withQuery(query)).getPartitionResults().values().forEach(result ->
                    result.getResult().forEachRemaining(one -> {
                        ArrayNode row = homes.addArray().add(key).add(one.value()).add(one.timestamp());
                        one.validTo().ifPresentOrElse(row::add, row::addNull);
                    }));
        }
        return found;
    }

    private static <T> T store(KafkaStreams streams, String name, QueryableStoreType<T> type) {
        return streams.store(StoreQueryParameters.fromNameAndType(name, type));
    }
}
