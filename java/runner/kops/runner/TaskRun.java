package kops.runner;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StreamTask;

/**
 * One task of the program: the library's own StreamTask of one sub-topology and partition, fed by hand.
 *
 * <p>Two orders of records: "given" processes them as they come; "time" lets the library choose between partitions as it does in production,
 * by the timestamp of each partition's next record, and waits until each partition that has not ended has one.
 *
 * <p>A commit flushes caches and suppress buffers. There is one after so many milliseconds between the timestamps of records, or after so many
 * records, when the program asks for one, and at the end. Punctuators on stream time are called after each record; those on wall-clock
 * time never, they are counted.
 */
final class TaskRun {
    private final Application application;
    private final Output output;
    private final StreamTask task;
    private final Object stateDirectory;
    private final Object metrics;
    private final MockConsumer<byte[], byte[]> consumer = new MockConsumer<>(OffsetResetStrategy.EARLIEST);
    private final Map<TopicPartition, Long> positions = new HashMap<>();
    private final Map<String, TopicPartition> inputs = new HashMap<>();
    private final Set<TopicPartition> open;
    private final MethodHandle numBuffered;
    private final Object partitionGroup;
    private final boolean cleanCommits;
    private final boolean givenOrder;
    private final long commitMs;
    private final long commitRecords;
    private final One one = new One();
    private final long now;
    private int wallClock;
    private long records;
    private long processed;
    private long sinceCommit;
    private long commits;
    private long committedAt = Long.MIN_VALUE;
    private long latest = Long.MIN_VALUE;
    private boolean ended;

    TaskRun(Application application, Frames frames, Map<String, String> request) {
        this.application = application;
        this.now = application.time.milliseconds();
        this.givenOrder = !"time".equals(request.get("order"));
        this.commitMs = Long.parseLong(request.getOrDefault("commit.ms", Long.toString(application.commitInterval)));
        this.commitRecords = Long.parseLong(request.getOrDefault("commit.records", "0"));
        TaskId id = new TaskId(Integer.parseInt(request.get("subtopology")), Integer.parseInt(request.get("partition")));
        Object topology = application.buildSubtopology(Integer.parseInt(request.get("subtopology")));
        Set<TopicPartition> partitions = partitions(topology, Integer.parseInt(request.get("partition")));
        this.open = new HashSet<>(partitions);
        this.output = new Output(frames, application.partitions, "all".equals(request.get("keep")) ? null : application.internalTopics());
        boolean persistent = Stores.swap((Collection<?>) Versions.call(topology, "stateStores"), application.inMemory);
        this.stateDirectory = application.stateDirectory(persistent);
        this.metrics = application.metrics();
        long cache = request.containsKey("cache.bytes") ? Long.parseLong(request.get("cache.bytes")) : application.cacheBytes();
        this.task = task(id, topology, partitions, application.cache(cache, metrics));
        this.partitionGroup = Versions.get(task, "partitionGroup");
        this.numBuffered = Versions.handle(partitionGroup.getClass(), "numBuffered", TopicPartition.class);
        this.cleanCommits = Versions.has(task, "prepareCommit", true);
        try {
            task.initializeIfNeeded();
            task.completeRestoration(none -> {});
        } catch (RuntimeException problem) {
            abandon();
            throw new Application.Failure(problem, null);
        }
        countWallClock();
    }

    private Set<TopicPartition> partitions(Object topology, int partition) {
        Set<TopicPartition> partitions = new HashSet<>();
        Map<TopicPartition, Long> starts = new HashMap<>();
        for (Object name : (Set<?>) Versions.call(topology, "sourceTopics")) {
            String topic = (String) name;
            if (!application.partitions.topics().contains(topic)) {
                throw new IllegalArgumentException("the request does not say how many partitions the topic " + topic + " has");
            }
            if (partition < application.partitions.of(topic)) {
                TopicPartition one = new TopicPartition(topic, partition);
                partitions.add(one);
                inputs.put(topic, one);
                starts.put(one, 0L);
            }
        }
        if (partitions.isEmpty()) {
            throw new IllegalArgumentException("no topic of the sub-topology has a partition " + partition);
        }
        consumer.assign(partitions);
        consumer.updateBeginningOffsets(starts);
        return partitions;
    }

    private StreamTask task(TaskId id, Object topology, Set<TopicPartition> partitions, Object cache) {
        LogContext log = new LogContext("task [" + id + "] ");
        List<Object> forManager = new ArrayList<>(List.of(
                id,
                Versions.constant(Versions.INTERNALS + "Task$TaskType", "ACTIVE"),
                log,
                stateDirectory,
                Versions.call(topology, "storeToChangelogTopic"),
                partitions));
        if (Versions.typeIfAny(Versions.INTERNALS + "ChangelogRegister").isPresent()) {
            forManager.add(Versions.proxy(Versions.INTERNALS + "ChangelogRegister", (proxy, method, arguments) -> null));
        }
        Object manager = Versions.make(Versions.INTERNALS + "ProcessorStateManager", forManager.toArray());
        Object context = Versions.make(Versions.INTERNALS + "ProcessorContextImpl", id, application.config, manager, metrics, cache);
        Object clients = Versions.proxy("org.apache.kafka.streams.KafkaClientSupplier", (proxy, method, arguments) -> {
            if (method.getName().equals("getProducer")) {
                return output;
            }
            throw new UnsupportedOperationException("a task that is run again has no clients: " + method.getName());
        });
        List<Object> forProducer = new ArrayList<>(List.of(application.config, "kops-StreamThread-1", clients, id, new UUID(0, 0), log, application.time, output));
        Versions.typeIfAny("org.apache.kafka.streams.internals.StreamsConfigUtils$ProcessingMode")
                .ifPresent(mode -> forProducer.add(Versions.constant(mode.getName(), "AT_LEAST_ONCE")));
        Object producer = Versions.make(Versions.INTERNALS + "StreamsProducer", forProducer.toArray());
        Object handler = Versions.callFirst(application.config, "productionExceptionHandler", "defaultProductionExceptionHandler");
        Object collector = Versions.make(Versions.INTERNALS + "RecordCollectorImpl", log, id, producer, handler, metrics, topology);
        List<Object> forTask = new ArrayList<>(List.of(
                id, partitions, topology, consumer, metrics, stateDirectory, cache, application.time, manager, collector, context, log));
        Object taskConfig = application.taskConfig();
        forTask.add(taskConfig == null ? application.config : taskConfig);
        return (StreamTask) Versions.make(Versions.INTERNALS + "StreamTask", forTask.toArray());
    }

    /** Processes what can be processed of these records; the rest waits for more. */
    void feed(Batch.Reader batch) throws IOException {
        while (batch.hasNext()) {
            ConsumerRecord<byte[], byte[]> record = batch.next();
            TopicPartition from = inputs.get(record.topic());
            if (from == null || from.partition() != record.partition()) {
                throw new IllegalArgumentException("task " + task.id() + " does not read " + record.topic() + ":" + record.partition());
            }
            try {
                add(from, record);
                if (givenOrder) {
                    drain(record.timestamp());
                } else {
                    latest = Math.max(latest, record.timestamp());
                }
            } catch (RuntimeException problem) {
                abandon();
                throw new Application.Failure(problem, givenOrder ? record : atFault());
            }
        }
        if (!givenOrder) {
            advance();
        }
        output.write();
    }

    private void add(TopicPartition from, ConsumerRecord<byte[], byte[]> record) {
        one.record = record;
        task.addRecords(from, one);
        positions.put(from, record.offset() + 1);
        records++;
    }

    /** One partition has no more records, so the others need not wait for it. */
    void end(String topic) {
        open.remove(inputs.get(topic));
        if (!givenOrder) {
            advance();
        }
        output.write();
    }

    private void advance() {
        try {
            while (ready()) {
                if (!task.process(now)) {
                    break;
                }
                after((Long) Versions.call(task, "streamTime"));
            }
        } catch (RuntimeException problem) {
            abandon();
            throw new Application.Failure(problem, atFault());
        }
    }

    private boolean ready() {
        for (TopicPartition partition : open) {
            if (buffered(partition) == 0) {
                return false;
            }
        }
        return true;
    }

    private int buffered(TopicPartition partition) {
        try {
            return (int) numBuffered.invoke(partitionGroup, partition);
        } catch (Throwable problem) {
            throw Versions.unwrapped(problem);
        }
    }

    private void drain(long timestamp) {
        while (task.process(now)) {
            after(timestamp);
        }
    }

    private void after(long timestamp) {
        processed++;
        sinceCommit++;
        task.maybePunctuateStreamTime();
        if (timestamp > latest) {
            latest = timestamp;
        }
        if (committedAt == Long.MIN_VALUE) {
            committedAt = timestamp;
        }
        if (task.commitRequested()
                || commitMs > 0 && latest - committedAt >= commitMs
                || commitRecords > 0 && sinceCommit >= commitRecords) {
            commit();
        }
    }

    private void commit() {
        positions.forEach(consumer::seek);
        if (cleanCommits) {
            Versions.call(task, "prepareCommit", true);
        } else {
            Versions.call(task, "prepareCommit");
        }
        task.postCommit(false);
        commits++;
        sinceCommit = 0;
        committedAt = latest;
    }

    /** Processes what is left, commits, closes; says what happened. */
    Map<String, String> finish() {
        open.clear();
        advance();
        Map<String, String> facts = new LinkedHashMap<>();
        try {
            commit();
            facts.put("stream_time", String.valueOf(Versions.call(task, "streamTime")));
            countWallClock();
        } catch (RuntimeException problem) {
            abandon();
            throw new Application.Failure(problem, atFault());
        }
        output.write();
        output.shut();
        facts.put("records", Long.toString(records));
        facts.put("processed", Long.toString(processed));
        facts.put("commits", Long.toString(commits));
        facts.put("wall_clock_schedules", Integer.toString(wallClock));
        facts.put("global_records", Long.toString(application.globalRecords()));
        facts.put("without_key", String.join(",", output.withoutKey()));
        facts.put("unknown_partitions", String.join(",", application.partitions.unknown()));
        output.dropped().forEach((topic, count) -> facts.put("dropped." + topic, Long.toString(count)));
        try {
            task.suspend();
            task.closeClean();
        } catch (RuntimeException problem) { // the program's close(), after all that counts
            facts.put("close", String.valueOf(problem));
            task.closeDirty();
        }
        cleanUp();
        ended = true;
        return facts;
    }

    /** Ends the task without its output. */
    void abandon() {
        if (ended) {
            return;
        }
        ended = true;
        output.shut();
        output.forget();
        try {
            task.suspend();
        } catch (RuntimeException problem) {
            // what is thrown while a broken program is closed says nothing more
        }
        try {
            task.closeDirty();
        } catch (RuntimeException problem) {
            // as above
        }
        cleanUp();
    }

    private void cleanUp() {
        Versions.call(stateDirectory, "unlock", task.id());
        Application.delete((java.io.File) Versions.call(stateDirectory, "getOrCreateDirectoryForTask", task.id()));
    }

    private void countWallClock() {
        Object queue = Versions.get(Versions.get(task, "systemTimePunctuationQueue"), "pq");
        wallClock = Math.max(wallClock, ((Collection<?>) queue).size());
    }

    /** The record that the task has in hand. */
    private ConsumerRecord<byte[], byte[]> atFault() {
        Object stamped = Versions.get(task, "record");
        Object context = stamped == null ? Versions.call(Versions.get(task, "processorContext"), "recordContext") : stamped;
        if (context == null) {
            return null;
        }
        String topic = (String) Versions.call(context, "topic");
        return topic == null
                ? null
                : Versions.record(topic, (Integer) Versions.call(context, "partition"), (Long) Versions.call(context, "offset"), 0, 0, 0, null, null, null);
    }

    /** One record, as often as it is asked for. */
    private static final class One implements Iterable<ConsumerRecord<byte[], byte[]>> {
        private ConsumerRecord<byte[], byte[]> record;

        @Override
        public java.util.Iterator<ConsumerRecord<byte[], byte[]>> iterator() {
            return Collections.singletonList(record).iterator();
        }
    }
}
