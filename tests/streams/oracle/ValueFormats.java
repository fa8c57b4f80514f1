import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.internals.Change;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.processor.internals.TopicPartitionMetadata;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

/** Values: of joins, suppress, foreign keys, grouped tables; positions and the metadata of offsets. */
final class ValueFormats {
    private static final String STATE = KeyFormats.STATE;
    private static final Serde<List<byte[]>> LISTS = Serdes.ListSerde(ArrayList.class, Serdes.ByteArray());

    static final Map<String, FormatCalls.Call> CALLS = Map.ofEntries(
            Map.entry("java_split", a -> List.of(a.get(0).textValue().split(a.get(1).textValue()))),
            Map.entry("join_values", a -> {
                List<byte[]> values = new ArrayList<>();
                for (JsonNode value : a.get(0)) {
                    Object side = Reflection.call(STATE + "LeftOrRightValue", value.get(1).booleanValue() ? "makeLeftValue" : "makeRightValue",
                            FormatCalls.bytes(value.get(0)));
                    values.add(KeyFormats.write(
                            Reflection.make(STATE + "LeftOrRightValueSerializer", new ByteArraySerializer(), new ByteArraySerializer()), side));
                }
                return LISTS.serializer().serialize(null, values);
            }),
            Map.entry("join_values_of", a -> {
                List<Object> sides = new ArrayList<>();
                for (byte[] value : LISTS.deserializer().deserialize(null, FormatCalls.bytes(a.get(0)))) {
                    Object side = KeyFormats.read(
                            Reflection.make(STATE + "LeftOrRightValueDeserializer", new ByteArrayDeserializer(), new ByteArrayDeserializer()), value);
                    Object left = Reflection.on(side, "leftValue");
                    sides.add(KeyFormats.list(left == null ? Reflection.on(side, "rightValue") : left, left != null));
                }
                return sides;
            }),
            Map.entry("suppressed", a -> {
                Object value = Reflection.make(STATE + "BufferValue", FormatCalls.bytes(a.get(2)), FormatCalls.bytes(a.get(1)),
                        FormatCalls.bytes(a.get(0)), context(a.get(4)));
                return ((ByteBuffer) Reflection.on(value, "serialize", Long.BYTES)).putLong(a.get(3).longValue()).array();
            }),
            Map.entry("suppressed_of", ValueFormats::restored),
            Map.entry("subscription", a -> {
                Object wrapper = Reflection.make(KeyFormats.FOREIGN_KEYS + "SubscriptionWrapper", KeyFormats.hash(FormatCalls.bytes(a.get(2))),
                        Reflection.call(KeyFormats.FOREIGN_KEYS + "SubscriptionWrapper$Instruction", "fromValue", (byte) a.get(1).intValue()),
                        FormatCalls.bytes(a.get(0)), (byte) (a.get(3).isNull() ? 0 : 1), a.get(3).isNull() ? null : a.get(3).intValue());
                return KeyFormats.write(subscriptions().serializer(), wrapper);
            }),
            Map.entry("subscription_of", a -> {
                Object wrapper = KeyFormats.read(subscriptions().deserializer(), FormatCalls.bytes(a.get(0)));
                Object instruction = Reflection.on(Reflection.on(wrapper, "instruction"), "value");
                return KeyFormats.list(Reflection.on(wrapper, "primaryKey"), instruction,
                        KeyFormats.hash((long[]) Reflection.on(wrapper, "hash")), Reflection.on(wrapper, "primaryPartition"));
            }),
            Map.entry("response", a -> KeyFormats.write(responses().serializer(), Reflection.make(
                    KeyFormats.FOREIGN_KEYS + "SubscriptionResponseWrapper", KeyFormats.hash(FormatCalls.bytes(a.get(1))), FormatCalls.bytes(a.get(0)), 7))),
            Map.entry("response_of", a -> {
                Object wrapper = KeyFormats.read(responses().deserializer(), FormatCalls.bytes(a.get(0)));
                return KeyFormats.list(Reflection.on(wrapper, "foreignValue"), KeyFormats.hash((long[]) Reflection.on(wrapper, "originalValueHash")));
            }),
            Map.entry("change", a -> KeyFormats.write(
                    Reflection.make("kstream.internals.ChangedSerializer", new ByteArraySerializer()),
                    new Change<>(FormatCalls.bytes(a.get(0)), FormatCalls.bytes(a.get(1))))),
            Map.entry("change_of", a -> {
                Change<?> change = (Change<?>) KeyFormats.read(
                        Reflection.make("kstream.internals.ChangedDeserializer", new ByteArrayDeserializer()), FormatCalls.bytes(a.get(0)));
                return KeyFormats.list(change.newValue, change.oldValue, change.isLatest);
            }),
            Map.entry("position", a -> {
                Position position = Position.emptyPosition();
                for (JsonNode part : a.get(0)) {
                    position = position.withComponent(part.get(0).textValue(), part.get(1).intValue(), part.get(2).longValue());
                }
                return PositionSerde.serialize(position).array();
            }),
            Map.entry("position_of", a -> {
                Position position = PositionSerde.deserialize(ByteBuffer.wrap(FormatCalls.bytes(a.get(0))));
                List<Object> parts = new ArrayList<>();
                for (String topic : position.getTopics()) {
                    position.getPartitionPositions(topic).forEach((partition, offset) -> parts.add(List.of(topic, partition, offset)));
                }
                return parts;
            }),
            Map.entry("offset_metadata", a -> {
                Map<String, Long> emissions = new HashMap<>();
                a.get(1).forEach(emission -> emissions.put(emission.get(0).textValue(), emission.get(1).longValue()));
                return new TopicPartitionMetadata(a.get(0).longValue(), new ProcessorMetadata(emissions)).encode();
            }),
            Map.entry("offset_metadata_of", a -> {
                TopicPartitionMetadata metadata = TopicPartitionMetadata.decode(a.get(0).textValue());
                List<Object> emissions = new ArrayList<>();
                ((Map<?, ?>) Reflection.field(metadata.processorMetadata(), "metadata"))
                        .forEach((store, time) -> emissions.add(List.of(store, time)));
                return KeyFormats.list(metadata.partitionTime(), emissions);
            }));

    private ValueFormats() {}

    private static Serde<?> subscriptions() throws Exception {
        return (Serde<?>) Reflection.make(KeyFormats.FOREIGN_KEYS + "SubscriptionWrapperSerde", KeyFormats.PSEUDO_TOPIC, Serdes.ByteArray());
    }

    private static Serde<?> responses() throws Exception {
        return (Serde<?>) Reflection.make(KeyFormats.FOREIGN_KEYS + "SubscriptionResponseWrapperSerde", Serdes.ByteArray());
    }

    /** [timestamp, offset, topic, partition, headers] */
    private static ProcessorRecordContext context(JsonNode json) throws Exception {
        return new ProcessorRecordContext(json.get(0).longValue(), json.get(1).longValue(), json.get(3).intValue(), json.get(2).textValue(),
                FormatCalls.headers(json.get(4)));
    }

    private static ConsumerRecord<byte[], byte[]> record(byte[] value, long timestamp, Headers headers) {
        return new ConsumerRecord<>("changelog", 0, 5, timestamp, TimestampType.CREATE_TIME, 1, 1, new byte[] {1}, value, headers, Optional.empty());
    }

    /** As InMemoryTimeOrderedKeyValueChangeBuffer does when it restores a record: [value, headers]. */
    private static Object restored(JsonNode a) throws Exception {
        Headers headers = FormatCalls.headers(a.get(1));
        Header version = headers.lastHeader("v");
        ConsumerRecord<byte[], byte[]> record = record(FormatCalls.bytes(a.get(0)), 3, headers);
        Bytes key = Bytes.wrap(record.key());
        String helper = STATE + "TimeOrderedKeyValueBufferChangelogDeserializationHelper";
        Object result = switch (version == null ? 0 : version.value()[0]) {
            case 0 -> Reflection.call(helper, "deserializeV0", record, key, null);
            case 1 -> Reflection.call(helper, "deserializeV1", record, key, null);
            case 2 -> Reflection.call(helper, "duckTypeV2", record, key);
            default -> Reflection.call(helper, "deserializeV3", record, key);
        };
        Object value = Reflection.on(result, "bufferValue");
        ProcessorRecordContext context = (ProcessorRecordContext) Reflection.on(value, "context");
        return KeyFormats.list(Reflection.on(value, "newValue"), Reflection.on(value, "oldValue"), Reflection.on(value, "priorValue"),
                Reflection.on(result, "time"), List.of(context.timestamp(), context.offset(), context.topic(), context.partition(),
                        FormatCalls.json(context.headers())));
    }
}
