import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Topologies of every kind, by name. */
final class TopologyTexts {
    private static final Duration MINUTE = Duration.ofMinutes(1);
    private final String prefix;

    /** @param prefix of the names of all topics that are not Kafka Streams' own */
    TopologyTexts(String prefix) {
        this.prefix = prefix;
    }

    private String named(String topic) {
        return prefix + topic;
    }

    /** Each topology, as an application would build it. */
    Map<String, Topology> all() {
        Map<String, Topology> found = new LinkedHashMap<>();
        add(found, "count-of-words", builder -> lines(builder).flatMapValues(line -> java.util.List.of(line.split(" ")))
                .groupBy((key, word) -> word).count(Materialized.as("counts-store")).toStream().to(named("word-counts")));
        add(found, "count-unnamed", builder -> lines(builder).groupBy((key, value) -> value).count().toStream().to(named("out")));
        add(found, "count-by-own-key", builder -> lines(builder).groupByKey().count(Materialized.as("counts")));
        add(found, "filtered-sum", builder -> lines(builder).filter((key, value) -> value != null).selectKey((key, value) -> value)
                .mapValues(value -> (long) value.length()).groupByKey(Grouped.with("by-value", Serdes.String(), Serdes.Long()))
                .reduce(Long::sum, Materialized.as("sums")).toStream().to(named("out"), Produced.with(Serdes.String(), Serdes.Long())));
        add(found, "table", builder -> builder.table(named("users"), Materialized.as("users-store")).toStream().to(named("out")));
        addOptimized(found, "table-optimized", builder -> builder.table(named("users"), Materialized.as("users-store")).toStream().to(named("out")));
        add(found, "table-unnamed", builder -> builder.<String, String>table(named("users")).mapValues(value -> value).toStream().to(named("out")));
        add(found, "to-table", builder -> lines(builder).toTable(Materialized.as("latest")));
        add(found, "to-table-by-new-key", builder -> lines(builder).selectKey((key, value) -> value).toTable(Materialized.as("latest")));
        add(found, "tumbling", builder -> lines(builder).groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE))
                .count(Materialized.as("per-minute")));
        add(found, "hopping", builder -> lines(builder).groupBy((key, value) -> value)
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(5), Duration.ofSeconds(1)).advanceBy(Duration.ofSeconds(2)))
                .count(Materialized.as("page-views")));
        add(found, "sliding", builder -> lines(builder).groupByKey()
                .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(MINUTE)).count(Materialized.as("sliding")));
        add(found, "session", builder -> lines(builder).groupByKey().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(MINUTE))
                .count(Materialized.as("sessions")));
        add(found, "suppressed", builder -> lines(builder).groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE)).count()
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream((key, value) -> key.key()).to(named("out")));
        add(found, "inner-join-of-tables", builder -> builder.<String, String>table(named("left"))
                .join(builder.<String, String>table(named("right")), (left, right) -> left + right, Materialized.as("joined")));
        add(found, "outer-join-of-tables", builder -> builder.<String, String>table(named("left"), Materialized.as("left-store"))
                .outerJoin(builder.table(named("right"), Materialized.as("right-store")), (left, right) -> left + right).toStream().to(named("out")));
        add(found, "foreign-key-join", builder -> builder.<String, String>table(named("orders"))
                .join(builder.<String, String>table(named("customers")), value -> value, (order, customer) -> order, TableJoined.as("fk"),
                        Materialized.as("enriched")));
        add(found, "foreign-key-join-unnamed", builder -> builder.<String, String>table(named("orders"))
                .leftJoin(builder.<String, String>table(named("customers")), value -> value, (order, customer) -> order).toStream().to(named("out")));
        add(found, "grouped-table", builder -> builder.<String, String>table(named("users"))
                .groupBy((user, region) -> KeyValue.pair(region, user)).count(Materialized.as("per-region")).toStream().to(named("regions")));
        add(found, "inner-join-of-streams", builder -> lines(builder).join(builder.<String, String>stream(named("other")),
                (left, right) -> left + right, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to(named("out")));
        add(found, "left-join-of-streams", builder -> lines(builder).leftJoin(builder.<String, String>stream(named("other")),
                (left, right) -> left + right, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE),
                StreamJoined.<String, String, String>as("captcha").withStoreName("captcha-store")).to(named("out")));
        add(found, "outer-join-of-streams", builder -> lines(builder).selectKey((key, value) -> value)
                .outerJoin(builder.<String, String>stream(named("other")), (left, right) -> left + right,
                        JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to(named("out")));
        add(found, "join-of-stream-and-table", builder -> lines(builder)
                .join(builder.<String, String>table(named("users"), Materialized.as("users-store")), (line, user) -> line + user).to(named("out")));
        add(found, "join-with-global-table", builder -> lines(builder)
                .join(builder.<String, String>globalTable(named("countries"), Materialized.as("countries-store")), (key, value) -> value,
                        (line, country) -> line + country).to(named("out")));
        add(found, "branched", builder -> lines(builder).split(Named.as("by-length-"))
                .branch((key, value) -> value.length() > 10, Branched.withConsumer(stream -> stream.to(named("long"))))
                .defaultBranch(Branched.withConsumer(stream -> stream.to(named("short")))));
        add(found, "merged", builder -> lines(builder).merge(builder.stream(named("other"))).groupByKey().count(Materialized.as("merged-counts")));
        add(found, "topics-by-pattern", builder -> builder.<String, String>stream(Pattern.compile(prefix + "events-.*")).groupByKey()
                .count(Materialized.as("events")));
        add(found, "several-topics", builder -> builder.<String, String>stream(java.util.List.of(named("one"), named("two"))).to(named("out")));
        add(found, "topic-by-content", builder -> lines(builder).to((key, value, context) -> named("out-" + key)));
        add(found, "two-parts", builder -> {
            lines(builder).groupByKey().count(Materialized.as("first"));
            builder.<String, String>stream(named("other")).groupByKey().count(Materialized.as("second"));
        });
        add(found, "two-repartitions", builder -> lines(builder).groupBy((key, value) -> value).count(Materialized.as("by-value")).toStream()
                .groupBy((key, count) -> count.toString(), Grouped.with(Serdes.String(), Serdes.Long())).count(Materialized.as("by-count"))
                .toStream().to(named("out"), Produced.with(Serdes.String(), Serdes.Long())));
        add(found, "repartitioned", builder -> lines(builder).repartition(Repartitioned.<String, String>as("spread").withNumberOfPartitions(6))
                .groupByKey().count(Materialized.as("spread-counts")));
        add(found, "unlogged", builder -> lines(builder).groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("unlogged").withLoggingDisabled()));
        add(found, "named-everywhere", builder -> builder.<String, String>stream(named("in"), Consumed.as("the-source"))
                .filter((key, value) -> true, Named.as("the-filter")).groupByKey(Grouped.as("the-group"))
                .count(Named.as("the-count"), Materialized.as("the-store")).toStream(Named.as("the-stream"))
                .to(named("out"), Produced.as("the-sink")));
        add(found, "versioned", builder -> builder.table(named("users"),
                Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("versions", Duration.ofHours(1)))));
        add(found, "cogrouped", builder -> builder.<String, String>stream(named("in")).groupByKey()
                .<String>cogroup((key, value, sum) -> sum + value).cogroup(builder.<String, String>stream(named("other")).groupByKey(),
                        (key, value, sum) -> value + sum).aggregate(() -> "", Materialized.as("cogrouped")));
        found.put("processor-api", new Topology().addSource("Source", named("in")).addProcessor("Process", Keep::new, "Source")
                .addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("kept"), Serdes.String(), Serdes.String()), "Process")
                .addSink("Sink", named("out"), "Process"));
        return found;
    }

    private KStream<String, String> lines(StreamsBuilder builder) {
        return builder.stream(named("in"));
    }

    private static void add(Map<String, Topology> to, String name, Consumer<StreamsBuilder> make) {
        StreamsBuilder builder = new StreamsBuilder();
        make.accept(builder);
        to.put(name, builder.build());
    }

    private static void addOptimized(Map<String, Topology> to, String name, Consumer<StreamsBuilder> make) {
        StreamsBuilder builder = new StreamsBuilder();
        make.accept(builder);
        Properties settings = new Properties();
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        to.put(name, builder.build(settings));
    }

    /** A processor that keeps what it is given. */
    private static final class Keep implements Processor<String, String, String, String> {
        private org.apache.kafka.streams.processor.api.ProcessorContext<String, String> context;
        private KeyValueStore<String, String> kept;

        @Override
        public void init(org.apache.kafka.streams.processor.api.ProcessorContext<String, String> given) {
            context = given;
            kept = given.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            kept.put(record.key(), record.value());
            context.forward(record);
        }
    }
}
