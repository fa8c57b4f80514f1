package kops.runner;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.utils.Utils;

/**
 * The producer of a task: what goes to the kept topics is a row of the output, all else is counted.
 *
 * <p>The library's own RecordCollectorImpl stands before it, so serializers, the program's partitioners and its handlers of errors are
 * called as in production. A record without a partition gets the one of Kafka's default partitioner.
 */
final class Output extends MockProducer<byte[], byte[]> {
    private final Frames frames;
    private final Partitions partitions;
    private final Memory memory;
    private final Set<String> kept;
    private final Set<String> compacted;
    private final Set<String> replayed;
    private final Batch.Writer replay = new Batch.Writer();
    private final Map<String, Lasts> tables = new HashMap<>();
    private final Batch.Writer rows = new Batch.Writer();
    private final Map<String, Writer> writers = new HashMap<>();
    private final Map<String, Long> dropped = new TreeMap<>();
    private final Set<String> withoutKey = new TreeSet<>();
    private final Optional<Partitioner> partitioner;
    private final Limits limits;
    private long written;
    private boolean open = true;

    /**
     * @param kept the topics whose records are rows of the output; null for all
     * @param compacted those of them of which only the last row of each key is one, at the end
     * @param replayed those of them of which a restart needs all rows
     * @param partitioner of the program's producer, where it is not Kafka's default
     * @param limits of what is accepted; the program's handler of errors gets the rest
     */
    Output(
            Frames frames,
            Partitions partitions,
            Memory memory,
            Set<String> kept,
            Set<String> compacted,
            Set<String> replayed,
            Optional<Partitioner> partitioner,
            Limits limits) {
        this.frames = frames;
        this.partitions = partitions;
        this.memory = memory;
        this.kept = kept == null ? null : new HashSet<>(kept);
        this.compacted = new HashSet<>(compacted);
        this.replayed = replayed;
        this.partitioner = partitioner;
        this.limits = limits;
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, Callback callback) {
        Writer writer = writers.get(record.topic());
        if (writer == null) {
            writer = new Writer(record.topic());
            writers.put(record.topic(), writer);
        }
        int to = record.partition() != null ? record.partition() : writer.partitionOf(record.key(), record.value());
        Optional<RecordTooLargeException> refusal = open ? limits.refusal(record) : Optional.empty();
        if (refusal.isPresent()) {
            callback.onCompletion(Versions.written(new TopicPartition(record.topic(), to)), refusal.get());
            return null;
        }
        if (open) {
            if (writer.kept) {
                long timestamp = record.timestamp() == null ? -1 : record.timestamp();
                byte[] headers = Batch.encoded(record.headers());
                if (writer.compacted) {
                    writer.lasts.put(written++, to, writer.next(to), timestamp, record.key(), record.value(), headers);
                } else {
                    add(record.topic(), to, writer.next(to), timestamp, record.key(), record.value(), headers);
                }
            } else {
                dropped.merge(record.topic(), 1L, Long::sum);
            }
        }
        if (callback != null) {
            callback.onCompletion(writer.metadata(to), null);
        }
        return null;
    }

    @Override
    public List<PartitionInfo> partitionsFor(String topic) {
        return partitions.infos(topic);
    }

    private void add(String topic, int partition, long offset, long timestamp, byte[] key, byte[] value, byte[] headers) {
        if (replayed.contains(topic)) {
            replay.add(topic, partition, offset, timestamp, key, value, headers);
        }
        rows.add(topic, partition, offset, timestamp, key, value, headers);
        if (rows.full()) {
            write();
        }
    }

    /** Writes the rows that are there. */
    void write() {
        try {
            rows.write(frames);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    /** Ends the output: what a program writes while it is closed does not belong to its state. */
    void shut() {
        open = false;
        List<Writer> compacted = new ArrayList<>(writers.values());
        compacted.removeIf(writer -> writer.lasts == null);
        Lasts.addInOrder(compacted.stream().map(writer -> writer.lasts).collect(Collectors.toList()), memory, rows, () -> {
            if (rows.full()) {
                write();
            }
        });
        writers.clear();
    }

    /** Notes a record of a topic that is itself the changelog of a table. */
    void read(ConsumerRecord<byte[], byte[]> record) {
        byte[] headers = Batch.encoded(record.headers());
        tables.computeIfAbsent(record.topic(), topic -> new Lasts(topic, memory))
                .put(written++, record.partition(), record.offset(), record.timestamp(), record.key(), record.value(), headers);
    }

    /** Ends the output; what came to changelogs until now is what a restart reads of them. */
    void stop() {
        write();
        open = false;
    }

    /**
     * Gives what came to changelogs to the output of the task that continues this one, and to that task's stores.
     *
     * @param restore is given them, some at a time, in the order of writing
     */
    void handOver(Output next, Consumer<List<ConsumerRecord<byte[], byte[]>>> restore) {
        List<Lasts> all = new ArrayList<>(tables.values());
        writers.values().stream().filter(writer -> writer.lasts != null).forEach(writer -> all.add(writer.lasts));
        Batch.Writer past = new Batch.Writer();
        Lasts.addInOrder(all, memory, past, () -> {
            if (past.full()) {
                restore.accept(next.taken(past.body()));
            }
        });
        restore.accept(next.taken(past.body()));
        restore.accept(next.taken(replay.body()));
    }

    /** Takes rows of changelogs that are there before its own, and returns them. */
    List<ConsumerRecord<byte[], byte[]>> taken(ByteBuffer body) {
        List<ConsumerRecord<byte[], byte[]>> records = Batch.records(body);
        for (ConsumerRecord<byte[], byte[]> record : records) {
            Writer writer = writers.computeIfAbsent(record.topic(), Writer::new);
            byte[] headers = Batch.encoded(record.headers());
            if (replayed.contains(record.topic())) {
                replay.add(record.topic(), record.partition(), record.offset(), record.timestamp(), record.key(), record.value(), headers);
            } else if (writer.lasts == null) {
                read(record);
            } else {
                long offset = writer.next(record.partition());
                writer.lasts.put(written++, record.partition(), offset, record.timestamp(), record.key(), record.value(), headers);
            }
        }
        return records;
    }

    /** Forgets rows that were not written. */
    void forget() {
        open = false;
        writers.clear();
        rows.clear();
    }

    Map<String, Long> dropped() {
        return dropped;
    }

    Set<String> withoutKey() {
        return withoutKey;
    }

    private final class Writer {
        private final String topic;
        private final boolean kept;
        private final boolean compacted;
        private int count; // 0: not asked for yet, since the library says itself where changelogs go
        private long[] offsets = new long[1];
        private RecordMetadata[] written = new RecordMetadata[1];
        private final Lasts lasts;

        Writer(String topic) {
            this.topic = topic;
            this.kept = Output.this.kept == null || Output.this.kept.contains(topic);
            this.compacted = Output.this.compacted.contains(topic);
            this.lasts = kept && compacted ? new Lasts(topic, memory) : null;
        }

        int partitionOf(byte[] key, byte[] value) {
            if (partitioner.isPresent()) {
                return partitioner.get().partition(topic, key, key, value, value, partitions.cluster(topic));
            }
            if (key == null) { // a producer chooses any, and sticks to it for a while
                withoutKey.add(topic);
                return 0;
            }
            if (count == 0) {
                count = partitions.of(topic);
            }
            return count == 1 ? 0 : Utils.toPositive(Utils.murmur2(key)) % count;
        }

        private void room(int partition) {
            if (partition >= offsets.length) {
                offsets = Arrays.copyOf(offsets, Math.max(partition + 1, count));
                written = Arrays.copyOf(written, offsets.length);
            }
        }

        long next(int partition) {
            room(partition);
            return offsets[partition]++;
        }

        RecordMetadata metadata(int partition) {
            room(partition);
            if (written[partition] == null) {
                written[partition] = Versions.written(new TopicPartition(topic, partition));
            }
            return written[partition];
        }
    }

    /** How many partitions topics have. */
    static final class Partitions {
        private static final Node NODE = new Node(0, "unused", 1);
        private final Map<String, Integer> counts = new TreeMap<>();
        private final Map<String, List<PartitionInfo>> infos = new HashMap<>();
        private final Map<String, Cluster> clusters = new HashMap<>();
        private final Set<String> unknown = new TreeSet<>();

        void put(String topic, int count) {
            counts.put(topic, count);
        }

        Set<String> topics() {
            return Collections.unmodifiableSet(counts.keySet());
        }

        /** One for topics whose number of partitions was not given; they are remembered. */
        int of(String topic) {
            Integer count = counts.get(topic);
            if (count == null) {
                unknown.add(topic);
                return 1;
            }
            return count;
        }

        List<PartitionInfo> infos(String topic) {
            return infos.computeIfAbsent(topic, name -> {
                List<PartitionInfo> all = new ArrayList<>();
                for (int partition = 0; partition < of(name); partition++) {
                    all.add(new PartitionInfo(name, partition, NODE, new Node[] {NODE}, new Node[] {NODE}));
                }
                return all;
            });
        }

        Cluster cluster(String topic) {
            return clusters.computeIfAbsent(
                    topic, name -> new Cluster("unused", List.of(NODE), infos(name), Collections.emptySet(), Collections.emptySet()));
        }

        Set<String> unknown() {
            return unknown;
        }
    }
}
