package kops.runner;

import java.lang.reflect.Array;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;

/**
 * Which records the program's producer, or the brokers, refuse as too large.
 *
 * <p>KafkaProducer.ensureValidRecordSize looks at the most that a record may take without compression. Brokers look at the batch, as it was
 * compressed, and the producer splits one that they refuse until each record has a batch of its own (Sender.completeBatch).
 */
final class Limits {
    private static final int BATCH_OVERHEAD = 61; // DefaultRecordBatch.RECORD_BATCH_OVERHEAD
    private static final int MOST_RECORD_OVERHEAD = 21; // DefaultRecord.MAX_RECORD_OVERHEAD
    private static final int FIRST_RECORD_OVERHEAD = 3; // attributes, and two differences to the batch that are 0
    private final long request;
    private final long memory;
    private final String compression;
    private final Map<String, Integer> topics;
    private final Map<String, Long> refused = new TreeMap<>();

    /**
     * @param producer the settings of the program's producer
     * @param topics max.message.bytes, where it is known
     */
    Limits(Map<String, Object> producer, Map<String, Integer> topics) {
        this.request = number(producer, ProducerConfig.MAX_REQUEST_SIZE_CONFIG, ConfigDef.Type.INT);
        this.memory = number(producer, ProducerConfig.BUFFER_MEMORY_CONFIG, ConfigDef.Type.LONG);
        this.compression = String.valueOf(producer.getOrDefault(ProducerConfig.COMPRESSION_TYPE_CONFIG, "none"));
        this.topics = topics;
    }

    private static long number(Map<String, Object> producer, String name, ConfigDef.Type type) {
        Object given = producer.get(name);
        Object found = given == null ? ProducerConfig.configDef().defaultValues().get(name) : ConfigDef.parseType(name, given, type);
        return ((Number) found).longValue();
    }

    /** Why a record is refused; it is counted then. */
    Optional<RecordTooLargeException> refusal(ProducerRecord<byte[], byte[]> record) {
        int content = content(record);
        long most = BATCH_OVERHEAD + MOST_RECORD_OVERHEAD + content;
        String why = null;
        if (most > request) {
            why = "The message is " + most + " bytes when serialized which is larger than " + request + ", which is the value of the "
                    + ProducerConfig.MAX_REQUEST_SIZE_CONFIG + " configuration.";
        } else if (most > memory) {
            why = "The message is " + most + " bytes when serialized which is larger than the total memory buffer you have configured with the "
                    + ProducerConfig.BUFFER_MEMORY_CONFIG + " configuration.";
        } else {
            Integer limit = topics.get(record.topic());
            if (limit != null && alone(content) > limit && (compression.equals("none") || compressed(record) > limit)) {
                why = "The message is larger than max.message.bytes=" + limit + " of the topic " + record.topic() + ".";
            }
        }
        if (why == null) {
            return Optional.empty();
        }
        refused.merge(record.topic(), 1L, Long::sum);
        return Optional.of(new RecordTooLargeException(why));
    }

    Map<String, Long> refused() {
        return refused;
    }

    long count() {
        return refused.values().stream().mapToLong(Long::longValue).sum();
    }

    /** DefaultRecord.sizeOf: key, value and headers, each with its length. */
    private static int content(ProducerRecord<byte[], byte[]> record) {
        int size = length(record.key()) + length(record.value());
        int headers = 0;
        for (Header header : record.headers()) {
            headers++;
            size += length(header.key().getBytes(StandardCharsets.UTF_8)) + length(header.value());
        }
        return size + varint(headers);
    }

    private static int length(byte[] data) {
        return data == null ? 1 : varint(data.length) + data.length;
    }

    /** ByteUtils.sizeOfVarint of a number that is not negative. */
    private static int varint(int number) {
        int bytes = 1;
        for (int left = number << 1; (left & 0xffffff80) != 0; left >>>= 7) {
            bytes++;
        }
        return bytes;
    }

    /** DefaultRecordBatch.sizeInBytes of a batch with this record. */
    private static long alone(int content) {
        int body = FIRST_RECORD_OVERHEAD + content;
        return (long) BATCH_OVERHEAD + varint(body) + body;
    }

    private long compressed(ProducerRecord<byte[], byte[]> record) {
        boolean inside = Versions.typeIfAny("org.apache.kafka.common.record.internal.MemoryRecords").isPresent(); // from 4.4 on
        String records = inside ? "org.apache.kafka.common.record.internal." : "org.apache.kafka.common.record.";
        Class<?> compressions = Versions.typeIfAny("org.apache.kafka.common.compress.Compression") // from 3.8 on
                .orElseGet(() -> Versions.type(records + "CompressionType"));
        Class<?> simple = Versions.type(records + "SimpleRecord");
        try {
            boolean older = compressions.getSimpleName().equals("CompressionType");
            Object chosen = compressions.getMethod(older ? "forName" : "of", String.class).invoke(null, compression);
            if (!older) {
                chosen = Versions.call(chosen, "build");
            }
            Object one = simple.getConstructor(long.class, byte[].class, byte[].class, Header[].class)
                    .newInstance(record.timestamp() == null ? 0L : record.timestamp(), record.key(), record.value(), record.headers().toArray());
            Object all = Array.newInstance(simple, 1);
            Array.set(all, 0, one);
            Object batch = Versions.type(records + "MemoryRecords").getMethod("withRecords", compressions, all.getClass()).invoke(null, chosen, all);
            return ((Number) Versions.call(batch, "sizeInBytes")).longValue();
        } catch (ReflectiveOperationException problem) {
            throw Versions.unwrapped(problem);
        }
    }
}
