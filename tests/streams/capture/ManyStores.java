import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.CompactionStyle;
import org.rocksdb.Options;

/** A store of each kind that all versions since 2.8 have, and a plain main that starts it. */
public final class ManyStores {
    private ManyStores() {}

    public static void main(final String[] arguments) {
        System.getenv("MANY_STORES");
        final Properties config = new Properties();
        config.put("application.id", "many");
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        config.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required password=\"hunter2\";");
        config.put("ssl.truststore.password", "hunter2");
        config.put("registry.url", "http://me:hunter2@registry:8081");
        config.put("main.consumer.isolation.level", "read_committed");
        config.put("rocksdb.config.setter", Forgetting.class);
        config.put("topic.segment.ms", "600000");
        System.out.println("about to start");
        new KafkaStreams(topology(), config).start();
        System.out.println("started");
    }

    static Topology topology() {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> clicks =
            builder.stream("clicks", Consumed.with(Serdes.String(), Serdes.String(), new ByOffset(), Topology.AutoOffsetReset.LATEST));
        clicks.groupByKey(Grouped.as("by-key")).count(Materialized.as("counts"));
        clicks.groupBy((key, value) -> value, Grouped.as("by-value")).windowedBy(OwnWindows.tumbling(Duration.ofMinutes(5), Duration.ofMinutes(1)))
            .count(Materialized.as("windows")).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("final"))
            .toStream().map((key, value) -> KeyValue.pair(key.key(), value)).to("windowed", Produced.with(Serdes.String(), Serdes.Long()));
        clicks.groupByKey().windowedBy(OwnWindows.sessions(Duration.ofMinutes(30), Duration.ofMinutes(2)))
            .reduce((one, other) -> one + other, Materialized.as("sessions"));
        final KStream<String, String> views = builder.stream("views");
        clicks.leftJoin(views, (click, view) -> click + view,
            OwnWindows.near(Duration.ofSeconds(10), Duration.ofSeconds(5)), StreamJoined.as("pairs")).to("joined");
        views.repartition(Repartitioned.<String, String>as("apart").withNumberOfPartitions(7).withStreamPartitioner(new First()))
            .groupByKey().aggregate(() -> 0L, (key, value, sum) -> sum + value.length(),
                Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("lengths")).withValueSerde(Serdes.Long())
                    .withCachingDisabled().withLoggingEnabled(Map.of("segment.bytes", "1000000")));
        final KTable<String, String> users = builder.table("users", Materialized.as("users-store"));
        final KTable<String, String> regions = builder.table("regions");
        users.join(regions, user -> user, (user, region) -> user + region, Materialized.as("of-users"));
        builder.globalTable("settings", Materialized.as("settings-store"));
        final Topology topology = builder.build();
        topology.addSource("orders-source", Serdes.String().deserializer(), Serdes.String().deserializer(), "orders");
        topology.addProcessor("dedup", Dedup::new, "orders-source");
        topology.addStateStore(Stores.keyValueStoreBuilder(Stores.lruMap("seen", 100), Serdes.String(), Serdes.Long()), "dedup");
        topology.addStateStore(Stores.windowStoreBuilder(Stores.persistentWindowStore("recent", Duration.ofHours(2), Duration.ofHours(1), true),
            Serdes.String(), Serdes.Long()).withLoggingDisabled(), "dedup");
        topology.addSink("chosen", (key, value, context) -> "orders-" + key, "dedup");
        return topology;
    }

    /** Lets RocksDB drop its oldest files. */
    public static final class Forgetting implements RocksDBConfigSetter {
        @Override
        public void setConfig(final String store, final Options options, final Map<String, Object> config) {
            Styles.set(options.setWriteBufferSize(1 << 20));
        }

        @Override
        public void close(final String store, final Options options) {}
    }

    /** What the class of the setting does not name itself. */
    static final class Styles {
        static void set(final Options options) {
            options.setCompactionStyle(CompactionStyle.FIFO);
        }
    }

    /** A processor with a wall-clock punctuator. */
    static final class Dedup implements Processor<String, String, String, String> {
        private KeyValueStore<String, Long> seen;

        @Override
        public void init(final ProcessorContext<String, String> context) {
            seen = context.getStateStore("seen");
            context.schedule(Duration.ofSeconds(1), PunctuationType.WALL_CLOCK_TIME, now -> seen.delete("" + now));
        }

        @Override
        public void process(final Record<String, String> record) {
            seen.put(record.key(), record.timestamp());
        }
    }

    /** Timestamps that are offsets. */
    public static final class ByOffset implements TimestampExtractor {
        @Override
        public long extract(final ConsumerRecord<Object, Object> record, final long partitionTime) {
            return record.offset();
        }
    }

    /** A partitioner of one's own; versions ask for one method or the other. */
    static final class First implements StreamPartitioner<String, String> {
        public Integer partition(final String topic, final String key, final String value, final int partitions) {
            return 0;
        }

        public Optional<Set<Integer>> partitions(final String topic, final String key, final String value, final int partitions) {
            return Optional.of(Set.of(0));
        }
    }
}
