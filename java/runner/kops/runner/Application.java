package kops.runner;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;

/** A program's topology and configuration, made ready to build tasks of it; its global stores are shared by them. */
final class Application {
    final StreamsConfig config;
    final Output.Partitions partitions;
    private final Map<String, Integer> limits;
    final Time time;
    final boolean inMemory;
    final long commitInterval;
    private final Object builder;
    private final Map<Integer, Subtopology> subtopologies = new TreeMap<>();
    private final Path directory;
    private Object globalTask;
    private Object globalDirectory;
    private Memory globalMemory;
    private long globalRecords;

    private Application(
            Object builder,
            StreamsConfig config,
            Path directory,
            Output.Partitions partitions,
            Map<String, Integer> limits,
            long now,
            boolean inMemory,
            long commits) {
        this.builder = builder;
        this.config = config;
        this.directory = directory;
        this.partitions = partitions;
        this.limits = limits;
        this.time = new FixedTime(now);
        this.inMemory = inMemory;
        this.commitInterval = commits;
    }

    /**
     * Does what KafkaStreams does with a topology when it is constructed.
     *
     * @param given what the program gave to KafkaStreams: a Map (Properties) or a StreamsConfig
     * @param request of the frame CONFIGURE
     */
    static Application of(Object topology, Object given, Map<String, String> request) throws IOException {
        Object builder = Versions.get(topology, "internalTopologyBuilder");
        Map<String, Object> settings = new HashMap<>();
        if (given instanceof StreamsConfig) {
            settings.putAll(((StreamsConfig) given).originals());
        } else if (given instanceof Properties) { // with the defaults behind them, which entrySet() leaves out
            ((Properties) given).stringPropertyNames().forEach(name -> settings.put(name, ((Properties) given).getProperty(name)));
            ((Map<?, ?>) given).forEach((name, value) -> settings.put((String) name, value));
        } else {
            ((Map<?, ?>) given).forEach((name, value) -> settings.put((String) name, value));
        }
        Output.Partitions partitions = new Output.Partitions();
        Map<String, Integer> limits = new HashMap<>();
        request.forEach((name, value) -> {
            if (name.startsWith("config.")) {
                settings.put(name.substring("config.".length()), value);
            } else if (name.startsWith("partitions.")) {
                partitions.put(name.substring("partitions.".length()), Integer.parseInt(value));
            } else if (name.startsWith("limit.")) {
                limits.put(name.substring("limit.".length()), Integer.parseInt(value));
            }
        });
        long commits = new StreamsConfig(settings).getLong(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG); // its default is that of the guarantee
        String parent = request.get("state.dir");
        Path directory =
                parent == null ? Files.createTempDirectory("kops-runner") : Files.createTempDirectory(Path.of(parent), "kops-runner");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.AT_LEAST_ONCE);
        settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, Integer.MAX_VALUE - 1);
        // What is put is read back before the commit with and without (KIP-892); the writes of a long interval would take memory beside the heap.
        settings.computeIfPresent("enable.transactional.statestores", (name, value) -> false);
        // The runner decides when a task may go on.
        settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, Versions.library().startsWith("2.") ? 0L : -1L);
        StreamsConfig config = new StreamsConfig(settings);
        Application application = new Application(
                builder,
                config,
                directory,
                partitions,
                limits,
                Long.parseLong(request.getOrDefault("wall_clock", "0")),
                Boolean.parseBoolean(request.getOrDefault("memory", "true")),
                commits);
        application.prepare();
        return application;
    }

    private void prepare() throws IOException {
        Versions.call(builder, "rewriteTopology", config);
        Versions.call(builder, "initializeSubscription");
        Versions.call(builder, "addSubscribedTopicsFromMetadata", new TreeSet<>(partitions.topics()), "");
        Versions.call(builder, "buildTopology"); // the names of changelogs are known after it
        subtopologies.putAll(Subtopology.of(builder));
        Object global = Versions.call(builder, "buildGlobalStateTopology");
        if (global != null) {
            startGlobal(global);
        }
    }

    /** What a frame HELLO says. */
    Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put("format", "1");
        facts.put("kafka", Versions.library());
        facts.put("java", System.getProperty("java.version"));
        facts.put("application", config.getString(StreamsConfig.APPLICATION_ID_CONFIG));
        facts.put("commit.ms", Long.toString(commitInterval));
        facts.putAll(Subtopology.facts(subtopologies));
        return facts;
    }

    /** The topics that only this application writes: changelogs, and what is repartitioned. */
    Set<String> internalTopics() {
        Set<String> topics = changelogs();
        subtopologies.values().forEach(one -> topics.addAll(one.repartition));
        return topics;
    }

    /** The changelogs that are not topics of others, which an optimized topology reads its tables from. */
    Set<String> changelogs() {
        Set<String> topics = new TreeSet<>();
        subtopologies.values().forEach(one -> topics.addAll(one.changelogs));
        subtopologies.values().forEach(one -> topics.removeAll(one.sources));
        return topics;
    }

    /** Whether a sub-topology writes into a topic that this application reads. */
    boolean passesOn(int subtopology) {
        Subtopology from = subtopologies.get(subtopology);
        return subtopologies.values().stream().anyMatch(one -> !Collections.disjoint(one.repartition, from.sinks));
    }

    Object buildSubtopology(int id) {
        if (!subtopologies.containsKey(id)) {
            throw new IllegalArgumentException("there is no sub-topology " + id + ", only " + subtopologies.keySet());
        }
        try {
            return Versions.call(builder, "buildSubtopology", id);
        } catch (RuntimeException | Error problem) { // of one of the program's suppliers
            throw new Failure(problem, "start", null);
        }
    }

    /** The partitioner of the program's producers, where the configuration names one. */
    Optional<Partitioner> partitioner() {
        Map<String, Object> settings = config.getProducerConfigs("kops");
        Object named = settings.get(ProducerConfig.PARTITIONER_CLASS_CONFIG);
        if (named == null) {
            return Optional.empty();
        }
        Class<?> type = (Class<?>) ConfigDef.parseType(ProducerConfig.PARTITIONER_CLASS_CONFIG, named, ConfigDef.Type.CLASS);
        Partitioner partitioner = (Partitioner) Utils.newInstance(type);
        partitioner.configure(settings);
        return Optional.of(partitioner);
    }

    /** What the program's producer accepts, for one task. */
    Limits limits() {
        return new Limits(config.getProducerConfigs("kops"), limits);
    }

    Object taskConfig() {
        return Versions.has(builder, "topologyConfigs") ? Versions.call(Versions.call(builder, "topologyConfigs"), "getTaskConfig") : null;
    }

    Object metrics() {
        return Versions.make(Versions.INTERNALS + "metrics.StreamsMetricsImpl", new Metrics(), "kops", "latest", time);
    }

    /** @param cache bytes that caches may take: no reason to keep nothing else in memory where these are as many as there are */
    Memory memory(Object metrics, TaskId task, long cache) {
        long globals = globalMemory == null ? 0 : globalMemory.taken();
        return new Memory(config, metrics, task, directory, Math.min(cache, Memory.heap() / 4) + globals);
    }

    Object stateDirectory(boolean persistent) {
        return Versions.make(Versions.INTERNALS + "StateDirectory", config, time, persistent);
    }

    Object cache(long bytes, Object metrics) {
        return Versions.make(Versions.CACHE, Versions.logContext(""), bytes, metrics);
    }

    /** The cache of one thread of the application, all of which a task may get. */
    long cacheBytes() {
        Map<String, ?> given = config.originals();
        String name = given.containsKey("statestore.cache.max.bytes") || !given.containsKey("cache.max.bytes.buffering")
                ? "statestore.cache.max.bytes" // from 3.4 on; it goes before the other
                : "cache.max.bytes.buffering";
        boolean known = config.values().containsKey(name);
        long total = config.getLong(known ? name : "cache.max.bytes.buffering");
        int threads = config.getInt(StreamsConfig.NUM_STREAM_THREADS_CONFIG) + (globalTask == null ? 0 : 1);
        return Math.max(0, total) / Math.max(1, threads);
    }

    private void startGlobal(Object topology) {
        MockConsumer<byte[], byte[]> consumer = new MockConsumer<>(OffsetResetStrategy.NONE);
        Set<?> topics = (Set<?>) Versions.call(topology, "sourceTopics");
        for (Object name : topics) {
            String topic = (String) name;
            List<PartitionInfo> infos = partitions.infos(topic);
            consumer.updatePartitions(topic, infos);
            Map<TopicPartition, Long> start = new HashMap<>();
            infos.forEach(info -> start.put(new TopicPartition(topic, info.partition()), 0L));
            consumer.updateBeginningOffsets(start);
            consumer.updateEndOffsets(start);
        }
        Object metrics = metrics();
        Collection<?> stores = (Collection<?>) Versions.call(topology, "globalStateStores");
        globalMemory = memory(metrics, new TaskId(-1, -1), cacheBytes());
        boolean persistent = Stores.swap(stores, inMemory, globalMemory);
        globalDirectory = stateDirectory(persistent);
        Object log = Versions.logContext("");
        Object listener = Versions.proxy("org.apache.kafka.streams.processor.StateRestoreListener", (proxy, method, arguments) -> null);
        Object manager = Versions.make(
                Versions.INTERNALS + "GlobalStateManagerImpl", log, time, topology, consumer, globalDirectory, listener, config);
        Object context = Versions.make(
                Versions.INTERNALS + "GlobalProcessorContextImpl", config, manager, metrics, cache(cacheBytes(), metrics), time);
        Versions.call(manager, "setGlobalProcessorContext", context);
        List<Object> arguments = new ArrayList<>(List.of(
                log,
                topology,
                context,
                manager,
                Versions.callFirst(config, "deserializationExceptionHandler", "defaultDeserializationExceptionHandler"),
                time,
                commitInterval));
        Object handles = config.originals().get("processing.exception.handler.global.enabled");
        if (handles != null && Boolean.parseBoolean(handles.toString())) {
            arguments.add(Versions.call(config, "processingExceptionHandler"));
        }
        globalTask = Versions.make(Versions.INTERNALS + "GlobalStateUpdateTask", arguments.toArray());
        Versions.call(globalTask, "initialize");
    }

    /** Puts records of global topics into the global stores. */
    void readGlobal(Batch.Reader records) throws IOException {
        if (globalTask == null) {
            throw new IllegalArgumentException("this application has no global stores");
        }
        while (records.hasNext()) {
            ConsumerRecord<byte[], byte[]> record = records.next();
            try {
                Versions.call(globalTask, "update", record);
            } catch (RuntimeException | Error problem) {
                throw new Failure(problem, "global", record);
            }
            globalRecords++;
        }
    }

    long globalRecords() {
        return globalRecords;
    }

    /** Deletes what a task kept on the disk. */
    void forget(TaskId task) {
        delete(directory.resolve(config.getString(StreamsConfig.APPLICATION_ID_CONFIG)).resolve(task.toString()).toFile());
    }

    void close() {
        if (globalMemory != null) {
            globalMemory.close();
        }
        delete(directory.toFile());
    }

    static void delete(File file) {
        File[] inside = file.listFiles();
        if (inside != null && !Files.isSymbolicLink(file.toPath())) {
            for (File one : inside) {
                delete(one);
            }
        }
        file.delete();
    }

    /** What a program threw, and what was done with which record. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
        final String phase;
        final transient ConsumerRecord<byte[], byte[]> record;

        /** @param record the one in hand; null if there was none yet */
        Failure(Throwable cause, String phase, ConsumerRecord<byte[], byte[]> record) {
            super(cause);
            this.phase = phase;
            this.record = record;
        }
    }
}
