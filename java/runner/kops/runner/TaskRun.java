package kops.runner;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StreamTask;

/**
 * One task of the program: the library's own StreamTask of one sub-topology and partition, fed by hand.
 *
 * <p>Two orders of records: "given" processes them as they come; "time" lets the library choose between partitions as it does in
 * production, by the timestamp of each partition's next record, and waits until each partition that has not ended has one. Topics that
 * come after others, such as the answers that a foreign-key join gets, are read when those of lower ranks have ended.
 *
 * <p>A commit flushes caches and suppress buffers. There is one after a number of milliseconds between the timestamps of records, or
 * of records, when the program asks for one, and at the end. Punctuators on stream time are called after each record, or after a number
 * of them; those on wall-clock time never, they are counted.
 */
final class TaskRun {
    private final Application application;
    private final Frames frames;
    private final Map<String, String> request;
    private final Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
    private final Set<String> tables = new HashSet<>();
    private final Memory memory;
    private final Output output;
    private final Limits limits;
    private final StreamTask task;
    private final Object stateDirectory;
    private final Object metrics;
    private final MockConsumer<byte[], byte[]> consumer = new MockConsumer<>(OffsetResetStrategy.EARLIEST);
    private final Map<String, Input> inputs = new HashMap<>();
    private final MethodHandle numBuffered;
    private final boolean cleanCommits;
    private final boolean tellsPositions;
    private final boolean givenOrder;
    private final long commitMs;
    private final long commitRecords;
    private final long punctuateRecords;
    private final Collection<?> streamTimeQueue;
    private final Collection<?> wallClockQueue;
    private final One one = new One();
    private int[] ranks;
    private final long now;
    private Object manager;
    private boolean started;
    private String phase = "start";
    private ConsumerRecord<byte[], byte[]> inHand;
    private int wallClock;
    private int streamTime;
    private long records;
    private long processed;
    private long sinceCommit;
    private long sincePunctuation;
    private long commits;
    private long committedAt = Long.MIN_VALUE;
    private long latest = Long.MIN_VALUE;
    private boolean ended;

    TaskRun(Application application, Frames frames, Map<String, String> request) {
        this.application = application;
        this.frames = frames;
        this.request = request;
        this.now = application.time.milliseconds();
        this.givenOrder = !"time".equals(request.get("order"));
        this.commitMs = Long.parseLong(request.getOrDefault("commit.ms", Long.toString(application.commitInterval)));
        this.commitRecords = Long.parseLong(request.getOrDefault("commit.records", "0"));
        this.punctuateRecords = Long.parseLong(request.getOrDefault("punctuate.records", "1"));
        int subtopology = Integer.parseInt(request.get("subtopology"));
        int partition = Integer.parseInt(request.get("partition"));
        TaskId id = new TaskId(subtopology, partition);
        Object topology = application.buildSubtopology(subtopology);
        Set<TopicPartition> partitions = partitions(topology, partition, ranks(request.getOrDefault("after", "")));
        commit(request, partitions);
        boolean restarts = Boolean.parseBoolean(request.get("restarted"));
        Set<String> kept = "all".equals(request.get("keep")) ? null : application.internalTopics();
        Set<String> compacted = "last".equals(request.get("changelogs")) ? application.changelogs() : Set.of();
        boolean isCompacted = compacted.equals(application.changelogs());
        compacted = new HashSet<>(compacted);
        Set<String> versions = Set.of(request.getOrDefault("versions", "").split(","));
        compacted.removeAll(versions);
        if (restarts) {
            ((Map<?, ?>) Versions.call(topology, "storeToChangelogTopic")).values().forEach(topic -> tables.add((String) topic));
            tables.retainAll(inputs.keySet());
        }
        this.metrics = application.metrics();
        long cache = request.containsKey("cache.bytes") ? Long.parseLong(request.get("cache.bytes")) : application.cacheBytes();
        this.memory = application.memory(metrics, id, cache);
        this.limits = application.limits();
        this.output = new Output(
                frames,
                application.partitions,
                memory,
                kept,
                compacted,
                restarts ? versions : Set.of(),
                application.partitioner(),
                limits);
        if (kept != null && isCompacted && !application.passesOn(subtopology)) {
            Caches.leaveOut(topology);
        }
        boolean inMemory = Boolean.parseBoolean(request.getOrDefault("memory", Boolean.toString(application.inMemory)));
        boolean persistent = Stores.swap((Collection<?>) Versions.call(topology, "stateStores"), inMemory, memory);
        this.stateDirectory = application.stateDirectory(persistent);
        this.task = task(id, topology, partitions, application.cache(cache, metrics));
        Object partitionGroup = Versions.get(task, "partitionGroup");
        this.numBuffered = Versions.handle(partitionGroup.getClass(), "numBuffered", TopicPartition.class).bindTo(partitionGroup);
        this.cleanCommits = Versions.has(task, "prepareCommit", true);
        this.tellsPositions = Versions.has(task, "updateNextOffsets", partitions.iterator().next(), new OffsetAndMetadata(0));
        this.streamTimeQueue = (Collection<?>) Versions.get(Versions.get(task, "streamTimePunctuationQueue"), "pq");
        this.wallClockQueue = (Collection<?>) Versions.get(Versions.get(task, "systemTimePunctuationQueue"), "pq");
        try {
            task.initializeIfNeeded();
        } catch (RuntimeException | Error problem) {
            throw failure(problem);
        }
        if (!Boolean.parseBoolean(request.get("restores"))) {
            start();
        }
    }

    /** Begins with these rows of changelogs in its stores. */
    void begin(ByteBuffer body) {
        restore(Boolean.parseBoolean(request.get("restarted")) ? output.taken(body) : Batch.records(body));
    }

    /** Puts rows of changelogs into their stores, as the library does when it restores them; before the first record. */
    private void restore(List<ConsumerRecord<byte[], byte[]>> all) {
        if (started) {
            throw new IllegalStateException("the task has started, so nothing can be restored");
        }
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> rows = new LinkedHashMap<>();
        for (ConsumerRecord<byte[], byte[]> row : all) {
            rows.computeIfAbsent(new TopicPartition(row.topic(), row.partition()), at -> new ArrayList<>()).add(row);
        }
        rows.forEach((changelog, records) -> {
            Object store = Versions.call(manager, "storeMetadata", changelog);
            if (store == null) {
                throw new IllegalArgumentException("no store of the task has the changelog " + changelog);
            }
            try {
                if (Versions.has(manager, "restore", store, records)) {
                    Versions.call(manager, "restore", store, records);
                } else { // from 3.7 on, with how many are left
                    Versions.call(manager, "restore", store, records, OptionalLong.empty());
                }
            } catch (RuntimeException | Error problem) {
                throw failure(problem);
            }
        });
    }

    /** Commits and closes the task, as a program that is stopped in good order; what it has written stays. */
    void stop() {
        start();
        try {
            phase = "commit";
            commit();
        } catch (RuntimeException | Error problem) {
            throw failure(problem);
        }
        output.stop();
        try {
            task.suspend();
            task.closeClean();
        } catch (RuntimeException problem) { // the program's close(), as at the end
            task.closeDirty();
        }
    }

    /**
     * The task as it continues after a restart: its stores as their changelogs have them, its input from where this one, which is stopped,
     * committed.
     *
     * @param next the program, begun afresh
     */
    TaskRun continued(Application next) {
        Map<String, String> then = new HashMap<>(request);
        then.put("restores", "true");
        committed.forEach((at, offset) -> {
            then.put("committed." + at.topic(), Long.toString(offset.offset()));
            then.put("metadata." + at.topic(), offset.metadata());
        });
        TaskRun run = new TaskRun(next, frames, then);
        try {
            output.handOver(run.output, run::restore);
        } catch (RuntimeException | Error problem) {
            run.abandon();
            throw problem;
        }
        run.records = records;
        run.processed = processed;
        inputs.forEach((topic, input) -> run.inputs.get(topic).continueFrom(input));
        ended = true;
        cleanUp();
        return run;
    }

    private void start() {
        if (started) {
            return;
        }
        started = true;
        try {
            task.completeRestoration(none -> {});
            Meters.silence(metrics);
        } catch (RuntimeException | Error problem) {
            throw failure(problem);
        }
        countSchedules();
    }

    /** Lets the task find what the application had committed: the metadata have the time up to which it had read each partition. */
    private void commit(Map<String, String> request, Set<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
        for (TopicPartition at : partitions) {
            String offset = request.get("committed." + at.topic());
            if (offset != null) {
                String metadata = request.getOrDefault("metadata." + at.topic(), "");
                committed.put(at, new OffsetAndMetadata(Long.parseLong(offset), metadata));
            }
        }
        consumer.commitSync(committed);
    }

    /** Reads TOPIC:RANK, separated by commas. */
    private static Map<String, Integer> ranks(String text) {
        Map<String, Integer> ranks = new HashMap<>();
        for (String one : text.isEmpty() ? new String[0] : text.split(",")) {
            int colon = one.lastIndexOf(':');
            ranks.put(one.substring(0, colon), Integer.valueOf(one.substring(colon + 1)));
        }
        return ranks;
    }

    private Set<TopicPartition> partitions(Object topology, int partition, Map<String, Integer> after) {
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
                inputs.put(topic, new Input(one, after.getOrDefault(topic, 0)));
                starts.put(one, 0L);
            }
        }
        if (partitions.isEmpty()) {
            throw new IllegalArgumentException("no topic of the sub-topology has a partition " + partition);
        }
        ranks = inputs.values().stream().mapToInt(input -> input.after).sorted().distinct().toArray();
        consumer.assign(partitions);
        consumer.updateBeginningOffsets(starts);
        return partitions;
    }

    private StreamTask task(TaskId id, Object topology, Set<TopicPartition> partitions, Object cache) {
        Object log = Versions.logContext("task [" + id + "] ");
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
        manager = Versions.make(Versions.INTERNALS + "ProcessorStateManager", forManager.toArray());
        Object context = Versions.make(Versions.INTERNALS + "ProcessorContextImpl", id, application.config, manager, metrics, cache);
        Object clients = Versions.proxy("org.apache.kafka.streams.KafkaClientSupplier", (proxy, method, arguments) -> {
            if (method.getName().equals("getProducer")) {
                return output;
            }
            throw new UnsupportedOperationException("a task that is run again has no clients: " + method.getName());
        });
        List<Object> forProducer = new ArrayList<>(
                List.of(application.config, "kops-StreamThread-1", clients, id, new UUID(0, 0), log, application.time, output));
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
        start();
        while (batch.hasNext()) {
            ConsumerRecord<byte[], byte[]> record = batch.next();
            Input input = inputs.get(record.topic());
            if (input == null || input.partition.partition() != record.partition()) {
                throw new IllegalArgumentException("task " + task.id() + " does not read " + record.topic() + ":" + record.partition());
            }
            records++;
            if (givenOrder) {
                try {
                    give(input, record);
                    if (input.head != null) {
                        step(input);
                    }
                } catch (RuntimeException | Error problem) {
                    throw failure(problem);
                }
            } else {
                input.waiting.add(record);
            }
        }
        advance();
        output.write();
    }

    /** One partition has no more records, so the others need not wait for it. */
    void end(String topic) {
        start();
        Input input = inputs.get(topic);
        if (input == null) {
            throw new IllegalArgumentException("task " + task.id() + " does not read " + topic);
        }
        input.ended = true;
        advance();
        output.write();
    }

    /** Lets the library choose between the partitions' next records, as long as it can see that of each. */
    private void advance() {
        try {
            while (headsAreThere()) {
                step(null);
            }
        } catch (RuntimeException | Error problem) {
            throw failure(problem);
        }
    }

    private boolean headsAreThere() {
        for (int rank : ranks) {
            if (headsAreThere(rank)) {
                return true;
            }
            if (!inputs.values().stream().allMatch(input -> input.after > rank || input.isThrough())) {
                return false;
            }
        }
        return false;
    }

    private boolean headsAreThere(int rank) {
        boolean any = false;
        boolean all = true;
        for (Input input : inputs.values()) {
            if (input.after != rank) {
                continue;
            }
            while (input.head == null && !input.waiting.isEmpty()) {
                give(input, input.waiting.poll());
            }
            any |= input.head != null;
            all &= input.head != null || input.ended;
        }
        return any && all;
    }

    /** Gives the task a partition's next record; the library reads it now, and may skip it. */
    private void give(Input input, ConsumerRecord<byte[], byte[]> record) {
        phase = "read";
        inHand = record;
        one.record = record;
        task.addRecords(input.partition, one);
        input.position = record.offset() + 1;
        input.head = buffered(input) > 0 ? record : null;
    }

    private int buffered(Input input) {
        try {
            return (int) numBuffered.invokeExact(input.partition);
        } catch (Throwable problem) {
            throw Versions.unwrapped(problem);
        }
    }

    /** @param only the partition that has a record; null: the library chooses */
    private void step(Input only) {
        phase = "process";
        try {
            if (!task.process(now)) {
                throw new IllegalStateException("task " + task.id() + " does not process a record that it has");
            }
        } finally {
            taken(only);
        }
        processed++;
        sinceCommit++;
        if (tables.contains(inHand.topic())) {
            output.read(inHand);
        }
        countSchedules(); // also those that are cancelled when they are called first
        if (++sincePunctuation >= punctuateRecords) {
            punctuate();
        }
        countSchedules();
        phase = "commit";
        latest = Math.max(latest, inHand.timestamp());
        if (committedAt == Long.MIN_VALUE) {
            committedAt = latest;
        }
        if (task.commitRequested()
                || commitMs > 0 && latest - committedAt >= commitMs
                || commitRecords > 0 && sinceCommit >= commitRecords) {
            commit();
        }
    }

    private void punctuate() {
        phase = "punctuate";
        sincePunctuation = 0;
        if (streamTimeQueue.isEmpty()) { // nobody waits
            return;
        }
        task.maybePunctuateStreamTime();
    }

    /** Finds the record that the task has just taken. */
    private void taken(Input only) {
        if (only != null) {
            inHand = only.head;
            only.head = null;
            return;
        }
        for (Input input : inputs.values()) {
            if (input.head != null && (givenOrder || buffered(input) == 0)) {
                inHand = input.head;
                input.head = null;
                return;
            }
        }
    }

    private void commit() {
        for (Input input : inputs.values()) {
            if (input.position >= 0) {
                consumer.seek(input.partition, input.position);
            }
            if (tellsPositions) { // 4.0 throws where a position is not known, also of a partition that nothing came from
                Versions.call(task, "updateNextOffsets", input.partition, new OffsetAndMetadata(Math.max(input.position, 0)));
            }
        }
        Object offsets = cleanCommits ? Versions.call(task, "prepareCommit", true) : Versions.call(task, "prepareCommit");
        ((Map<?, ?>) offsets).forEach((at, offset) -> committed.put((TopicPartition) at, (OffsetAndMetadata) offset));
        task.postCommit(false);
        commits++;
        sinceCommit = 0;
        committedAt = latest;
    }

    /** Processes what is left, commits, closes; says what happened. */
    Map<String, String> finish() {
        start();
        inputs.values().forEach(input -> input.ended = true);
        advance();
        Map<String, String> facts = new LinkedHashMap<>();
        try {
            if (sincePunctuation > 0) {
                punctuate();
            }
            phase = "commit";
            commit();
        } catch (RuntimeException | Error problem) {
            throw failure(problem);
        }
        countSchedules();
        facts.put("surroundings", Surroundings.read());
        facts.put("stream_time", String.valueOf(Versions.call(task, "streamTime")));
        facts.put("skipped", Long.toString(Math.max(0, skipped() - limits.count()))); // the library counts these too
        limits.refused().forEach((topic, count) -> facts.put("refused." + topic, Long.toString(count)));
        output.shut();
        output.write();
        facts.put("records", Long.toString(records));
        facts.put("processed", Long.toString(processed));
        facts.put("commits", Long.toString(commits));
        facts.put("wall_clock_schedules", Integer.toString(wallClock));
        facts.put("stream_time_schedules", Integer.toString(streamTime));
        facts.put("heap", Long.toString(Memory.heap()));
        facts.put("on_disk", String.join(",", memory.moved()));
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
        memory.close();
        application.forget(task.id());
    }

    private void countSchedules() {
        wallClock = Math.max(wallClock, wallClockQueue.size());
        streamTime = Math.max(streamTime, streamTimeQueue.size());
    }

    /** Records that the library counts as dropped: late ones, without a key where one is needed, those that a handler lets go. */
    private long skipped() {
        double skipped = 0;
        for (Map.Entry<?, ?> metric : ((Map<?, ?>) Versions.call(metrics, "metrics")).entrySet()) {
            if (((MetricName) metric.getKey()).name().equals(Meters.DROPPED + "-total")) {
                skipped += (Double) ((Metric) metric.getValue()).metricValue();
            }
        }
        return (long) skipped;
    }

    /** Ends the task; says what it did, and with which record, when this was thrown. */
    private Application.Failure failure(Throwable problem) {
        abandon();
        return new Application.Failure(problem, phase, inHand);
    }

    /** A partition that the task reads. */
    private static final class Input {
        final TopicPartition partition;
        final Deque<ConsumerRecord<byte[], byte[]>> waiting = new ArrayDeque<>();
        ConsumerRecord<byte[], byte[]> head;
        final int after;
        long position = -1;
        boolean ended;

        Input(TopicPartition partition, int after) {
            this.partition = partition;
            this.after = after;
        }

        /** Takes what has been given to the task before, and not processed. */
        void continueFrom(Input before) {
            if (before.head != null) {
                waiting.add(before.head);
            }
            waiting.addAll(before.waiting);
            position = before.position;
            ended = before.ended;
        }

        boolean isThrough() {
            return ended && head == null && waiting.isEmpty();
        }
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
