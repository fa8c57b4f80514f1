package kops.runner;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Small programs that compile for every version from 2.8 to 4.4. */
final class Programs {
    private static final Set<String> WITHOUT_STREAM =
            Set.of(
                    "processor",
                    "iterates",
                    "once",
                    "throws_punctuating",
                    "throws_starting",
                    "foreign_key",
                    "unreadable",
                    "optimized",
                    "pattern",
                    "versioned");
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private Programs() {}

    static Properties settings(String name) {
        Properties settings = new Properties();
        settings.put("application.id", "app");
        settings.put("bootstrap.servers", "unused:1");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        if (name.equals("exactly_once")) {
            settings.put("processing.guarantee", Versions.library().startsWith("2.") ? "exactly_once" : "exactly_once_v2");
        }
        return settings;
    }

    static Topology build(String name) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> in = WITHOUT_STREAM.contains(name) ? null : builder.stream("in");
        switch (name) {
            case "count":
            case "exactly_once":
                in.groupByKey().count(longs("counts")).toStream().to("out", Produced.valueSerde(Serdes.Long()));
                break;
            case "sum":
                in.groupByKey().aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value), longs("sums"));
                break;
            case "untimed":
                in.groupByKey().count(Materialized.as(Stores.persistentKeyValueStore("counts")));
                break;
            case "window":
                in.groupByKey().windowedBy(windows()).count(Materialized.as("windows"))
                        .toStream((key, value) -> key.toString()).to("out", Produced.valueSerde(Serdes.Long()));
                break;
            case "session":
                in.groupByKey().windowedBy(sessions()).reduce((old, value) -> old + value, Materialized.as("sessions"));
                break;
            case "suppress":
                in.groupByKey(Grouped.with(Serdes.String(), Serdes.String())).windowedBy(windows())
                        .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withKeySerde(Serdes.String()))
                        .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("held"))
                        .toStream((key, value) -> key.key())
                        .to("out", Produced.with(Serdes.String(), Serdes.Long()));
                break;
            case "stream_join":
                in.join(builder.stream("other"), (left, right) -> left + right, joins(), joined()).to("out");
                break;
            case "outer_join":
                in.outerJoin(builder.stream("other"), (left, right) -> left + "/" + right, joins(), joined()).to("out");
                break;
            case "foreign_key":
                // orders know their customer: the value is customer@order
                builder.<String, String>table("orders", Materialized.as("orders"))
                        .join(
                                builder.<String, String>table("customers", Materialized.as("customers")),
                                order -> order.split("@")[0],
                                (order, customer) -> order + "+" + customer,
                                Materialized.as("joined"))
                        .toStream().to("out");
                break;
            case "tables":
                KTable<String, String> left = in.toTable(Materialized.as("left"));
                KTable<String, String> right = builder.<String, String>stream("other").toTable(Materialized.as("right"));
                left.join(right, (one, two) -> one + two, Materialized.as("both")).toStream().to("out");
                break;
            case "repartition":
                in.selectKey((key, value) -> value.substring(0, 1)).groupByKey(Grouped.as("by-letter"))
                        .count(Materialized.as("letters")).toStream().to("out", Produced.valueSerde(Serdes.Long()));
                break;
            case "partitioner":
                in.selectKey((key, value) -> value.substring(0, 1))
                        .repartition(Repartitioned.<String, String>as("by-letter")
                                .withNumberOfPartitions(3)
                                .withStreamPartitioner(byLastByte()))
                        .groupByKey().count(Materialized.as("letters"));
                break;
            case "global":
                GlobalKTable<String, String> names = builder.globalTable("names", Materialized.as("names"));
                in.join(names, (key, value) -> value, (value, known) -> value + "=" + known).groupByKey()
                        .reduce((old, value) -> old + ";" + value, Materialized.as("named"));
                break;
            case "throws":
                in.groupByKey()
                        .aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value) / (value.equals("7") ? 0 : 1), longs("sums"));
                break;
            case "unreadable":
                builder.stream("in2", Consumed.with(Serdes.String(), Serdes.Long()))
                        .groupByKey(Grouped.with(Serdes.String(), Serdes.Long())).count(Materialized.as("counts"));
                break;
            case "throws_late": // when the cache is flushed
                in.groupByKey().count(longs("counts")).toStream().foreach((key, count) -> {
                    throw new IllegalStateException("no more than " + count);
                });
                break;
            case "lacks_a_class":
                in.foreach((key, value) -> {
                    throw new NoClassDefFoundError("com/acme/Missing");
                });
                break;
            case "throws_punctuating":
                return processor(Punctuates::new);
            case "once":
                return processor(Once::new);
            case "throws_starting":
                return processor(Refuses::new);
            case "optimized": // the table's topic is its changelog
                builder.<String, String>table("in", Materialized.as("values")).toStream().to("out");
                Properties optimize = new Properties();
                optimize.put("topology.optimization", "all");
                return builder.build(optimize);
            case "pattern":
                builder.<String, String>stream(Pattern.compile("in.*")).groupByKey().count(longs("counts"));
                break;
            case "versioned":
                builder.<String, String>table("in", versioned()).toStream().to("out");
                break;
            case "processor":
                return processor(Keep::new);
            case "iterates":
                return processor(Iterates::new);
            default:
                throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static Materialized<String, Long, KeyValueStore<Bytes, byte[]>> longs(String store) {
        return Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(store).withValueSerde(Serdes.Long());
    }

    private static StreamJoined<String, String, String> joined() {
        return StreamJoined.<String, String, String>as("joined").withStoreName("joined");
    }

    /** One processor with one store, which reads two topics. */
    private static Topology processor(ProcessorSupplier<String, String, String, String> keep) {
        Topology topology = new Topology();
        topology.addSource("first", Serdes.String().deserializer(), Serdes.String().deserializer(), "in");
        topology.addSource("second", Serdes.String().deserializer(), Serdes.String().deserializer(), "other");
        topology.addProcessor("keep", keep, "first", "second");
        topology.addStateStore(
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("kept"), Serdes.String(), Serdes.String()), "keep");
        topology.addSink("to", "out", Serdes.String().serializer(), Serdes.String().serializer(), "keep");
        return topology;
    }

    /** Keeps the last value, its headers and place; every minute of stream time writes what it holds, and forgets it. */
    private static final class Keep implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore("kept");
            context.schedule(MINUTE, PunctuationType.STREAM_TIME, this::forget);
            context.schedule(MINUTE, PunctuationType.WALL_CLOCK_TIME, now -> {
                throw new IllegalStateException("wall-clock time passed");
            });
        }

        @Override
        public void process(Record<String, String> record) {
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers()) {
                headers.append(header.key()).append('=').append(header.value() == null ? "null" : new String(header.value()));
            }
            String place = context.recordMetadata().map(at -> at.topic() + ":" + at.partition() + ":" + at.offset()).orElse("nowhere");
            store.put(record.key(), record.value() + "|" + headers + "|" + place + "|" + context.taskId() + "|" + clock());
            context.forward(record.withHeaders(record.headers().add("seen", new byte[] {1})));
        }

        private String clock() {
            try { // from 3.2 on
                return ProcessorContext.class.getMethod("currentSystemTimeMs").invoke(context).toString();
            } catch (ReflectiveOperationException older) {
                return "";
            }
        }

        private void forget(long time) {
            try (KeyValueIterator<String, String> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<String, String> one = all.next();
                    store.delete(one.key);
                    context.forward(new Record<>(one.key, one.value, time));
                }
            }
        }
    }

    /** Throws at the second punctuation, of which the first is at the first record. */
    private static final class Punctuates implements Processor<String, String, String, String> {
        @Override
        public void init(ProcessorContext<String, String> context) {
            context.schedule(MINUTE, PunctuationType.STREAM_TIME, time -> {
                if (time >= MINUTE.toMillis()) {
                    throw new IllegalStateException("no more time");
                }
            });
        }

        @Override
        public void process(Record<String, String> record) {
            // only time counts
        }
    }

    /** Schedules, at each record, what is called once. */
    private static final class Once implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private Cancellable scheduled;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
        }

        @Override
        public void process(Record<String, String> record) {
            scheduled = context.schedule(MINUTE, PunctuationType.STREAM_TIME, time -> scheduled.cancel());
        }
    }

    private static final class Refuses implements Processor<String, String, String, String> {
        @Override
        public void init(ProcessorContext<String, String> context) {
            throw new IllegalStateException("no licence");
        }

        @Override
        public void process(Record<String, String> record) {
            // it does not come to this
        }
    }

    /** Changes the store under an open iterator: deletes each next key, and says what it saw. */
    private static final class Iterates implements Processor<String, String, String, String> {
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            store.put(record.key(), record.value());
            StringBuilder seen = new StringBuilder();
            try (KeyValueIterator<String, String> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<String, String> one = all.next();
                    seen.append(one.key).append(one.value.length());
                    if (all.hasNext()) {
                        store.delete(all.peekNextKey());
                        store.put("z" + one.key.substring(0, 1), one.value);
                    }
                }
            }
            store.put("seen", seen.toString());
        }
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> versioned() throws Exception { // from 3.5 on
        return Materialized.as((KeyValueBytesStoreSupplier) Stores.class
                .getMethod("persistentVersionedKeyValueStore", String.class, Duration.class)
                .invoke(null, "versions", MINUTE));
    }

    /** By the last byte of the value; one method up to 3.x, another one for several partitions in 4.x, and with headers from 4.4 on. */
    @SuppressWarnings("unchecked")
    private static StreamPartitioner<String, String> byLastByte() {
        return (StreamPartitioner<String, String>) Proxy.newProxyInstance(
                Programs.class.getClassLoader(), new Class<?>[] {StreamPartitioner.class}, (proxy, method, arguments) -> {
                    String value = (String) arguments[2];
                    int partition = value.charAt(value.length() - 1) % (int) arguments[arguments.length - 1];
                    return method.getName().equals("partition") ? partition : Optional.of(Set.of(partition));
                });
    }

    private static TimeWindows windows() throws Exception {
        try {
            return (TimeWindows) TimeWindows.class.getMethod("ofSizeAndGrace", Duration.class, Duration.class)
                    .invoke(null, MINUTE, MINUTE);
        } catch (NoSuchMethodException before30) {
            Object of = TimeWindows.class.getMethod("of", Duration.class).invoke(null, MINUTE);
            return (TimeWindows) TimeWindows.class.getMethod("grace", Duration.class).invoke(of, MINUTE);
        }
    }

    private static SessionWindows sessions() throws Exception {
        try {
            return (SessionWindows) SessionWindows.class.getMethod("ofInactivityGapAndGrace", Duration.class, Duration.class)
                    .invoke(null, MINUTE, MINUTE);
        } catch (NoSuchMethodException before30) {
            Object of = SessionWindows.class.getMethod("with", Duration.class).invoke(null, MINUTE);
            return (SessionWindows) SessionWindows.class.getMethod("grace", Duration.class).invoke(of, MINUTE);
        }
    }

    private static JoinWindows joins() throws Exception {
        try {
            return (JoinWindows) JoinWindows.class.getMethod("ofTimeDifferenceAndGrace", Duration.class, Duration.class)
                    .invoke(null, MINUTE, MINUTE);
        } catch (NoSuchMethodException before30) {
            Object of = JoinWindows.class.getMethod("of", Duration.class).invoke(null, MINUTE);
            return (JoinWindows) JoinWindows.class.getMethod("grace", Duration.class).invoke(of, MINUTE);
        }
    }
}
