import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.gson.Gson;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.Collator;
import java.text.DecimalFormat;
import java.text.NumberFormat;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.ResourceBundle;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.DeserializationExceptionHandler;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** An application whose stores are each made in another way: by libraries, handlers, serdes, stores and partitioners of its own. */
public final class Varied {
    private Varied() {}

    /** @param arguments as of Apps; the last ones are config.file=PATH, and settings that Apps gives Kafka Streams */
    public static void main(final String[] arguments) throws Exception {
        Apps.run(arguments, topology(arguments[3] + "-", Path.of(arguments[arguments.length - 1].split("=", 2)[1])));
    }

    private static Topology topology(final String topics, final Path file) throws IOException {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> in = builder.stream(topics + "in");
        final KGroupedStream<String, String> grouped = in.groupByKey();
        aggregated(grouped, "jackson", new HashMap<>(), Varied::counted, serde(Varied::jackson, bytes -> read(bytes, Map.class)));
        aggregated(grouped, "nodes", "{}", Varied::inNode, Serdes.String());
        aggregated(grouped, "gson", "{}", Varied::inGson, Serdes.String());
        aggregated(grouped, "protobuf", Struct.getDefaultInstance(), Varied::inStruct, serde(Struct::toByteArray, Varied::struct));
        aggregated(grouped, "avro", record(0, "", List.of()), Varied::inRecord, serde(Varied::avro, Varied::ofAvro));
        aggregated(grouped, "serialized", new HashSet<>(), Varied::joined, serde(Varied::java, Varied::ofJava));
        aggregated(grouped, "sorted", "", Varied::collated, Serdes.String());
        aggregated(grouped, "formatted", "", (value, held) -> NumberFormat.getCurrencyInstance().format(number(value)), Serdes.String());
        aggregated(grouped, "bundle", "", (value, held) -> ResourceBundle.getBundle("Texts").getString("word") + value, Serdes.String());
        aggregated(grouped, "service", "", (value, held) -> services() + value, Serdes.String());
        aggregated(grouped, "serde", "", (value, held) -> value, new Configured());
        in.groupByKey().aggregate(() -> "", (key, value, held) -> held.length() > 90 ? value : held + value,
            Materialized.<String, String>as(Stores.inMemoryKeyValueStore("memory")).withValueSerde(Serdes.String()));
        in.groupByKey().aggregate(() -> "", (key, value, held) -> held.length() > 90 ? value : held + value,
            Materialized.<String, String>as(new OwnSupplier("own")).withValueSerde(Serdes.String()));
        in.split().branch((key, value) -> number(value) % 3 == 0, Branched.withConsumer(some -> some.groupByKey().count(Materialized.as("thirds"))))
            .defaultBranch(Branched.withConsumer(rest -> rest.merge(in).groupByKey().count(Materialized.as("merged"))));
        in.selectKey((key, value) -> value.substring(0, 1)).repartition(Repartitioned.<String, String>as("initials").withNumberOfPartitions(3)
            .withStreamPartitioner((topic, key, value, partitions) -> Optional.of(Set.of(key.charAt(0) % partitions)))).groupByKey()
            .count(Materialized.as("partitioned"));
        in.mapValues(value -> {
            if (number(value) % 7 == 0) throw new IllegalStateException("a seventh");
            return value;
        }).groupByKey().count(Materialized.as("handled"));
        in.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(4), Duration.ofMinutes(10)))
            .aggregate(() -> "", (key, value, held) -> held + value, (key, one, other) -> one + "+" + other, Materialized.as("merging"));
        builder.<String, Long>stream(topics + "numbers", Consumed.with(Serdes.String(), Serdes.Long())).groupByKey(Grouped.with(Serdes.String(),
            Serdes.Long())).reduce(Long::sum, Materialized.as("decoded"));
        builder.<String, String>stream(topics + "keyless").groupBy((key, value) -> key == null ? value.substring(0, 1) : key, Grouped.as("keyless"))
            .count(Materialized.as("without-key"));
        builder.stream(topics + "times", Consumed.with(Serdes.String(), Serdes.String()).withTimestampExtractor(new OfPayload())).groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(20), Duration.ofMinutes(10))).count(Materialized.as("extracted"));
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("traces"), Serdes.String(), Serdes.String()));
        builder.<String, String>stream(topics + "traced").process(Tracing::new, "traces");
        for (final String name : Files.readAllLines(file)) {
            in.filter((key, value) -> value.contains(name)).groupByKey().count(Materialized.as("of-" + name));
        }
        return builder.build();
    }

    private interface Step<T> {
        T next(String value, T held);
    }

    private static <T> void aggregated(final KGroupedStream<String, String> grouped, final String store, final T first, final Step<T> step,
            final Serde<T> serde) {
        grouped.aggregate(() -> first, (key, value, held) -> step.next(value, held), Materialized.<String, T, KeyValueStore<Bytes, byte[]>>as(store)
            .withValueSerde(serde));
    }

    private static <T> Serde<T> serde(final Function<T, byte[]> write, final Function<byte[], T> read) {
        final Serializer<T> serializer = (topic, value) -> value == null ? null : write.apply(value);
        final Deserializer<T> deserializer = (topic, bytes) -> bytes == null ? null : read.apply(bytes);
        return Serdes.serdeFrom(serializer, deserializer);
    }

    private static int number(final String value) {
        return Integer.parseInt(value.substring(1));
    }

    private static byte[] jackson(final Object value) {
        try {
            return new ObjectMapper().writeValueAsBytes(value);
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static <T> T read(final byte[] bytes, final Class<T> type) {
        try {
            return new ObjectMapper().readValue(bytes, type);
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @SuppressWarnings({"rawtypes", "unchecked"})
    private static Map counted(final String value, final Map held) {
        final Map found = new HashMap(held);
        found.merge(value.substring(0, 1), 1, (one, other) -> (Integer) one + (Integer) other);
        return found;
    }

    private static String inNode(final String value, final String held) {
        final JsonNode before = read(held.getBytes(StandardCharsets.UTF_8), JsonNode.class);
        return ((ObjectNode) before).put(value.substring(0, 1), number(value)).toString();
    }

    private static String inGson(final String value, final String held) {
        final Gson gson = new Gson();
        @SuppressWarnings("unchecked") final Map<String, Object> found = gson.fromJson(held, TreeMap.class);
        found.put(value.substring(0, 1), number(value) / 8.0);
        return gson.toJson(found);
    }

    private static Struct inStruct(final String value, final Struct held) {
        return held.toBuilder().putFields(value.substring(0, 1), Value.newBuilder().setNumberValue(number(value)).build()).build();
    }

    private static Struct struct(final byte[] bytes) {
        try {
            return Struct.parseFrom(bytes);
        } catch (final InvalidProtocolBufferException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static final Schema SCHEMA = SchemaBuilder.record("Held").fields().requiredInt("count").requiredString("last").name("all").type().array()
        .items().stringType().noDefault().endRecord();

    private static GenericRecord record(final int count, final String last, final List<String> all) {
        final GenericRecord made = new GenericData.Record(SCHEMA);
        made.put("count", count);
        made.put("last", last);
        made.put("all", all);
        return made;
    }

    private static GenericRecord inRecord(final String value, final GenericRecord held) {
        final List<String> all = new ArrayList<>();
        for (final Object each : (List<?>) held.get("all")) all.add(each.toString());
        if (all.size() > 5) all.remove(0);
        all.add(value);
        return record((Integer) held.get("count") + 1, value, all);
    }

    private static byte[] avro(final GenericRecord value) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        try {
            new GenericDatumWriter<GenericRecord>(SCHEMA).write(value, encoder);
            encoder.flush();
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    private static GenericRecord ofAvro(final byte[] bytes) {
        try {
            return new GenericDatumReader<GenericRecord>(SCHEMA).read(null, DecoderFactory.get().binaryDecoder(bytes, null));
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static HashSet<String> joined(final String value, final HashSet<String> held) {
        final HashSet<String> found = new HashSet<>(held);
        found.add(value.substring(0, 2));
        return found;
    }

    private static byte[] java(final Serializable value) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream stream = new ObjectOutputStream(bytes)) {
            stream.writeObject(value);
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    @SuppressWarnings("unchecked")
    private static HashSet<String> ofJava(final byte[] bytes) {
        try (ObjectInputStream stream = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            return (HashSet<String>) stream.readObject();
        } catch (final IOException | ClassNotFoundException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Sorted as the locale of the process has it: in Danish aa comes after z. */
    private static String collated(final String value, final String held) {
        final TreeSet<String> found = new TreeSet<>(Collator.getInstance());
        found.addAll(List.of(held.split(" ")));
        found.addAll(List.of("zz", "aa", "\u00f8" + value.charAt(0), new DecimalFormat("#,##0.0").format(number(value) / 10 * 1000)));
        return String.join(" ", found);
    }

    private static String services() {
        final StringBuilder found = new StringBuilder();
        ServiceLoader.load(java.nio.file.spi.FileTypeDetector.class).forEach(each -> found.append(each.getClass().getSimpleName()));
        return found.toString();
    }

    /** A serde that reads a setting of the application, and a variable, when it is configured or first used. */
    public static final class Configured implements Serde<String> {
        private final String prefix = String.valueOf(System.getenv("SERDE_PREFIX"));

        @Override
        public Serializer<String> serializer() {
            return (topic, value) -> value == null ? null : (prefix + value).getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public Deserializer<String> deserializer() {
            return (topic, bytes) -> bytes == null ? null : new String(bytes, StandardCharsets.UTF_8).substring(prefix.length());
        }
    }

    /** Takes the time from the value, and none of what has none. */
    private static final class OfPayload implements TimestampExtractor {
        @Override
        public long extract(final ConsumerRecord<Object, Object> record, final long partitionTime) {
            final int number = number((String) record.value());
            return number % 11 == 0 ? -1 : record.timestamp() / 60_000 * 60_000 + number % 50 * 1000;
        }
    }

    /** Passes over what cannot be decoded. */
    public static final class Passing implements DeserializationExceptionHandler {
        @Override
        public Response handleError(final ErrorHandlerContext context, final ConsumerRecord<byte[], byte[]> record, final Exception problem) {
            return Response.resume();
        }

        @Override
        public void configure(final Map<String, ?> settings) {}
    }

    private static final class Tracing implements Processor<String, String, String, String> {
        private KeyValueStore<String, String> store;

        @Override
        public void init(final ProcessorContext<String, String> context) {
            store = context.getStateStore("traces");
        }

        @Override
        public void process(final Record<String, String> record) {
            final StringBuilder found = new StringBuilder();
            record.headers().forEach(each -> found.append(each.key()).append('=').append(each.value() == null ? "" : new String(each.value())));
            store.put(record.key(), found + record.value() + record.timestamp() % 1000 + new RecordHeaders(record.headers()).toArray().length);
        }
    }

    /** A store of the program's own making. */
    private static final class OwnSupplier implements KeyValueBytesStoreSupplier {
        private final KeyValueBytesStoreSupplier inner;

        OwnSupplier(final String name) {
            inner = Stores.inMemoryKeyValueStore(name);
        }

        @Override
        public String name() {
            return inner.name();
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return inner.get();
        }

        @Override
        public String metricsScope() {
            return "own";
        }
    }
}
