package kops.agent;

import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** All that is known of a program, each fact read from the program itself; what cannot be read is listed as unknown. */
final class Capture {
    private static final String STATE = "org.apache.kafka.streams.state.";
    private static final List<String> TELLING = List.of("WALL_CLOCK_TIME", "STREAM_TIME", "currentTimeMillis", "nanoTime",
        "java/util/Random", "randomUUID", "java/net/http/HttpClient", "java/sql/", "approximateNumEntries");
    private static final List<String> DROPPING = List.of("setCompactionFilter", "setMergeOperator", "setComparator", "FIFO");
    private static final int MOST_HELPERS = 10_000;

    private final Session session;
    private final Object topology;
    private final Library library;
    private final List<Map<String, Object>> unknown = new ArrayList<>();

    Capture(final Session session, final Object topology, final Object config) throws ReflectiveOperationException {
        this.session = session;
        this.topology = topology;
        this.library = new Library(topology, config);
    }

    Map<String, Object> facts() throws Exception {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("format", "kops-capture");
        facts.put("version", 2);
        final String application = (String) Read.call(library.config, "getString", "application.id");
        facts.put("application_id", application);
        facts.put("captured_at", Instant.now().toString());
        facts.put("library", libraryFacts());
        facts.put("java", java());
        facts.put("command", Session.command());
        facts.put("description", Read.call(topology, "describe").toString());
        facts.put("subtopologies", subtopologies());
        facts.put("nodes", nodes());
        facts.put("stores", stores(library.stores(), false));
        facts.put("global_stores", stores(library.globalStores(), true));
        facts.put("copartitioned", tried("copartitioned", () -> sorted((Collection<?>) Read.call(library.builder, "copartitionGroups"))));
        facts.put("config", new Settings(session).facts(library.config, application, unknown));
        facts.put("client_supplier", session.supplierClass());
        facts.put("rocksdb_setter", rocksdbSetter());
        facts.put("class_path", ClassPath.facts(
            loader -> unknown(unknown, "class_path of " + loader, "it does not say where its classes are: no digest covers them"),
            topology.getClass().getClassLoader(), Thread.currentThread().getContextClassLoader()));
        facts.put("surroundings", Surroundings.facts(application));
        if (Surroundings.unseen() != null) unknown(unknown, "surroundings.read", Surroundings.unseen());
        facts.put("unknown", unknown);
        return facts;
    }

    static void unknown(final List<Map<String, Object>> into, final String what, final Throwable error) {
        unknown(into, what, String.valueOf(error.getMessage()));
    }

    private static void unknown(final List<Map<String, Object>> into, final String what, final String why) {
        final Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("what", what);
        entry.put("why", why);
        into.add(entry);
    }

    /** What sets RocksDB's options, if the program does, and which it and its helpers mention of those that let entries of stores go. */
    private Map<String, Object> rocksdbSetter() {
        final Object setter = ((Map<?, ?>) Read.call(library.config, "values")).get("rocksdb.config.setter");
        if (!(setter instanceof Class)) return null;
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("class", ((Class<?>) setter).getName());
        facts.put("mentions", tried("rocksdb_setter.mentions", () -> {
            final Collection<String> found = mentions((Class<?>) setter, DROPPING);
            found.addAll(mentionsOfHelpers((Class<?>) setter));
            return found;
        }));
        return facts;
    }

    /** What classes of a setter's own packages mention that it refers to, or that these refer to, where they use RocksDB. */
    private static Collection<String> mentionsOfHelpers(final Class<?> setter) {
        final String[] parts = setter.getName().split("\\.");
        final int last = parts.length - 1;
        final String home = parts[0] + (last > 1 ? "/" + parts[1] : "");
        final Pattern names = Pattern.compile(last == 0 ? "[A-Za-z_$][\\w$]*" : Pattern.quote(home) + "/[\\w$/]+");
        final Collection<String> found = new TreeSet<>();
        final Set<String> seen = new HashSet<>();
        final Deque<String> left = new ArrayDeque<>(List.of(setter.getName().replace('.', '/')));
        while (!left.isEmpty() && seen.size() < MOST_HELPERS) {
            final String name = left.pop();
            final String text = seen.add(name) ? textOf(setter.getClassLoader(), name + ".class") : null;
            if (text == null) continue;
            if (text.contains("org/rocksdb/")) DROPPING.stream().filter(text::contains).forEach(found::add);
            names.matcher(text).results().map(MatchResult::group).filter(each -> !seen.contains(each)).forEach(left::push);
        }
        return found;
    }

    /** A class file; null where there is none. */
    private static String textOf(final ClassLoader loader, final String file) {
        try (InputStream stream = loader == null ? null : loader.getResourceAsStream(file)) {
            return stream == null ? null : new String(stream.readAllBytes(), StandardCharsets.ISO_8859_1);
        } catch (final java.io.IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private <T> T tried(final String what, final Supplier<T> read) {
        try {
            return read.get();
        } catch (final RuntimeException error) {
            unknown(unknown, what, error);
            return null;
        }
    }

    private Map<String, Object> libraryFacts() throws Exception {
        final Map<String, Object> facts = new LinkedHashMap<>();
        final URL found = Library.place(topology.getClass());
        final String place = found == null ? null : found.toString();
        if (found == null) unknown(unknown, "library.loaded_from", "its class loader does not say");
        facts.put("streams", version("library.streams", "kafka/kafka-streams-version.properties", "kafka-streams", place));
        facts.put("clients", version("library.clients", "kafka/kafka-version.properties", "kafka-clients", place));
        facts.put("loaded_from", place);
        facts.put("class_loader", library.loader.getClass().getName());
        return facts;
    }

    /** The version of a jar: as a file in it says, or its name where it has none, as kafka-streams-3.3.2.jar. */
    private String version(final String what, final String resource, final String jar, final String place) throws Exception {
        try (InputStream stream = library.loader.getResourceAsStream(resource)) {
            if (stream != null) {
                final Properties found = new Properties();
                found.load(stream);
                return found.getProperty("version");
            }
        }
        final Matcher named = Pattern.compile(jar + "-(\\d+\\.\\d+\\.\\d+[\\w.-]*?)\\.jar").matcher(String.valueOf(place));
        if (named.find()) return named.group(1);
        unknown(unknown, what, "the class path has no file " + resource);
        return null;
    }

    private static Map<String, Object> java() {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("version", System.getProperty("java.version"));
        facts.put("vendor", System.getProperty("java.vendor"));
        facts.put("home", System.getProperty("java.home"));
        facts.put("folder", System.getProperty("user.dir"));
        return facts;
    }

    private List<Object> subtopologies() {
        final List<Object> found = new ArrayList<>();
        final Collection<?> global = library.globalNodes();
        final Map<Integer, Object> topics = library.topics();
        library.nodeGroups().forEach((id, nodes) -> {
            final Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("id", id);
            facts.put("global", global.containsAll(nodes));
            facts.put("nodes", inOrder(nodes));
            final Object info = topics.get(id);
            if (info == null && !global.containsAll(nodes)) { // the library leaves out what reads only patterns
                facts.put("source_topics", null);
                facts.put("repartition_topics", List.of());
                facts.put("sink_topics", null);
                facts.put("changelogs", internal(library.changelogsOf(nodes), List.of(), true));
                unknown(unknown, "subtopologies." + id + ".source_topics", "its sources are patterns: only a cluster has the topics");
            } else if (info != null) {
                final Collection<?> sources = (Collection<?>) Read.field(info, "sourceTopics");
                final Map<?, ?> repartitions = (Map<?, ?>) Read.field(info, "repartitionSourceTopics");
                final TreeSet<Object> own = new TreeSet<>(sources);
                own.removeAll(repartitions.keySet());
                facts.put("source_topics", own);
                facts.put("repartition_topics", internal(repartitions, sources, false));
                facts.put("sink_topics", new TreeSet<>((Collection<?>) Read.field(info, "sinkTopics")));
                facts.put("changelogs", internal((Map<?, ?>) Read.field(info, "stateChangelogTopics"), sources, true));
            }
            found.add(facts);
        });
        return found;
    }

    /** Node names in the order of the description, as far as the library keeps it. */
    private List<Object> inOrder(final Collection<?> names) {
        final List<Object> found = new ArrayList<>();
        library.nodes().keySet().forEach(each -> {
            if (names.contains(each)) found.add(each);
        });
        return found;
    }

    private List<Object> internal(final Map<?, ?> topics, final Collection<?> sources, final boolean changelogs) {
        final List<Object> found = new ArrayList<>();
        for (final Object topic : new TreeSet<>(topics.keySet())) {
            final Object config = topics.get(topic);
            final Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("name", topic);
            if (changelogs) facts.put("is_source_topic", sources.contains(topic));
            else facts.put("partitions", Library.partitions(config)); // null: as many as what is written to it has
            facts.put("settings", tried(topic + ".settings", () -> library.settings(config)));
            found.add(facts);
        }
        return found;
    }

    private List<Object> nodes() {
        final List<Object> found = new ArrayList<>();
        final Map<String, Object> processors = library.builtProcessors();
        library.nodes().forEach((name, factory) -> {
            final Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("name", name);
            facts.put("predecessors", Arrays.asList((Object[]) Read.field(factory, "predecessors")));
            final String kind = factory.getClass().getSimpleName();
            if (kind.startsWith("Source")) source(facts, factory);
            else if (kind.startsWith("Sink")) sink(facts, factory);
            else processor(facts, factory, processors.get(name));
            found.add(facts);
        });
        return found;
    }

    private void source(final Map<String, Object> facts, final Object factory) {
        facts.put("type", "source");
        final Collection<?> topics = (Collection<?>) Read.field(factory, "topics");
        final Object pattern = Read.field(factory, "pattern");
        final Map<String, Object> resets = new LinkedHashMap<>();
        final List<Object> names = new ArrayList<>();
        if (pattern == null) {
            for (final Object topic : topics) {
                final boolean internal = library.internalTopics().contains(topic);
                names.add(internal ? library.decorated((String) topic) : topic);
                resets.put((String) names.get(names.size() - 1), library.reset(topic, "Topics"));
            }
        } else {
            resets.put(pattern.toString(), library.reset(pattern, "Patterns"));
        }
        facts.put("topics", names);
        facts.put("pattern", pattern == null ? null : pattern.toString());
        facts.put("reset", resets);
        facts.put("timestamp_extractor", Read.className(Read.field(factory, "timestampExtractor")));
        facts.put("key_deserializer", Serdes.coder(Read.field(factory, "keyDeserializer")));
        facts.put("value_deserializer", Serdes.coder(Read.field(factory, "valDeserializer")));
    }

    private void sink(final Map<String, Object> facts, final Object factory) {
        facts.put("type", "sink");
        final Object extractor = Read.field(factory, "topicExtractor");
        final boolean fixed = Read.is(extractor, "org.apache.kafka.streams.processor.internals.StaticTopicNameExtractor");
        final String topic = fixed ? (String) Read.field(extractor, "topicName") : null;
        final boolean internal = fixed && library.internalTopics().contains(topic);
        facts.put("topic", internal ? library.decorated(topic) : topic);
        facts.put("internal", internal);
        facts.put("topic_extractor", fixed ? null : Read.className(extractor));
        facts.put("partitioner", Read.className(Read.field(factory, "partitioner")));
        facts.put("key_serializer", Serdes.coder(Read.field(factory, "keySerializer")));
        facts.put("value_serializer", Serdes.coder(Read.field(factory, "valSerializer")));
    }

    private void processor(final Map<String, Object> facts, final Object factory, final Object made) {
        facts.put("type", "processor");
        final Object built = made == null ? null : programs(made);
        final Object supplier = Read.field(factory, "supplier");
        facts.put("supplier", Read.className(unwrapped(supplier)));
        facts.put("processor", Read.className(built));
        final boolean own = built != null && !Library.isOwn(built.getClass());
        facts.put("program_class", own);
        facts.put("mentions", own ? tried(facts.get("name") + ".mentions", () -> mentions(built.getClass(), TELLING)) : List.of());
        facts.put("stores", new TreeSet<>((Collection<?>) Read.field(factory, "stateStoreNames")));
        final Walk walk = tried(facts.get("name") + ".windows", () -> new Walk(supplier));
        if (walk == null) return;
        facts.put("windows", walk.windows);
        facts.put("suppress", walk.suppress);
        facts.put("emit", walk.emit);
        facts.put("left_join", walk.leftJoin);
        facts.put("functions", walk.functions);
    }

    /** What a processor of the library hands its records to if that is the program's: a transformer, or a processor before 3.0. */
    private static Object programs(final Object made) {
        final Object adapted = Read.is(made, "org.apache.kafka.streams.processor.internals.ProcessorAdapter")
            ? Read.field(made, "delegate") : made;
        Object each = adapted;
        while (each != null && Library.isOwn(each.getClass())) {
            each = Read.fieldOrNull(each, "transformer", "valueTransformer", "val$transformer", "val$valueTransformer", "delegate");
        }
        return each == null ? adapted : each;
    }

    /** The supplier that the processor wrappers of 4.0 and later were given. */
    private static Object unwrapped(final Object supplier) {
        Object each = supplier;
        while (each.getClass().getName().startsWith("org.apache.kafka.streams.processor.internals.NoOpProcessorWrapper")) {
            each = Read.field(each, "delegate");
        }
        return each;
    }

    /** Which of some names the class file of a class, and those of its super classes, hold: not proof that they are used. */
    private static Collection<String> mentions(final Class<?> type, final Collection<String> names) {
        final Collection<String> found = new TreeSet<>();
        for (Class<?> each = type; each != null && !each.getName().startsWith("java.") && !Library.isOwn(each);
                each = each.getSuperclass()) {
            final String file = each.getName().replaceFirst("\\$\\$Lambda.*", "").replace('.', '/') + ".class";
            final String text = textOf(each.getClassLoader(), file);
            if (text == null) throw new IllegalStateException("the class path has no file " + file);
            names.stream().filter(text::contains).forEach(found::add);
        }
        return found;
    }

    private List<Object> stores(final Map<?, ?> factories, final boolean global) {
        final List<Object> found = new ArrayList<>();
        final Map<String, Object> built = library.builtStores();
        final Map<?, ?> changelogs = library.changelogs();
        for (final Object name : new TreeSet<>(factories.keySet())) {
            final Object factory = factories.get(name);
            final Object builder = Library.storeBuilder(factory);
            final Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("name", name);
            final List<Object> objects = layers(built.get(name));
            final List<String> layers = objects.stream().map(Read::className).collect(Collectors.toList());
            facts.put("kind", kind(objects));
            facts.put("builder", Read.className(builder));
            facts.put("layers", layers);
            facts.put("persistent", built.get(name) == null ? null : Read.call(built.get(name), "persistent"));
            facts.put("caching", built.get(name) == null ? null : layers.stream().anyMatch(Capture::isCaching));
            facts.put("logging", Read.call(factory, "loggingEnabled"));
            facts.put("log_config", Read.call(factory, "logConfig"));
            facts.put("changelog", global ? null : changelogs.get(name));
            facts.put("headers", layers.stream().anyMatch(layer -> layer.contains("WithHeaders")));
            facts.put("key_serde", tried(name + ".key_serde", () -> Serdes.serde(serde(builder, objects, "keySerde"))));
            facts.put("value_serde", tried(name + ".value_serde", () -> Serdes.serde(serde(builder, objects, "valueSerde"))));
            times(facts, builder, objects);
            facts.put("processors", global ? null : tried(name + ".processors", () -> new TreeSet<>(Library.users(factory))));
            found.add(facts);
        }
        return found;
    }

    private static boolean isCaching(final String layer) {
        return layer.substring(layer.lastIndexOf('.') + 1).startsWith("Caching");
    }

    /** A serde of a store: as its builder has it, or else the store itself. */
    private static Object serde(final Object builder, final List<Object> layers, final String name) {
        if (builder != null) {
            try {
                return Read.field(builder, name);
            } catch (final Read.Absent error) { // the builder of a join's buffer, up to 3.6, gives it to the store only later
                return Read.field(layers.get(0), name);
            }
        }
        final Object internal = Read.fieldOrNull(layers.get(0), "internal"); // of versioned stores
        return Read.field(internal == null ? layers.get(0) : internal, name.equals("valueSerde") && internal != null ? "plainValueSerde" : name);
    }

    /** Times of windowed, session and versioned stores: as their supplier has them, or else the store itself. */
    private static void times(final Map<String, Object> facts, final Object builder, final List<Object> layers) {
        final Object supplier = builder == null ? null : Read.fieldOrNull(builder, "storeSupplier"); // buffers have none
        facts.put("supplier", Read.className(supplier));
        final boolean versioned = layers.stream().anyMatch(layer -> Read.fieldOrNull(layer, "historyRetention") != null);
        for (final String[] each : new String[][] {
            {"retention_ms", "retentionPeriod", "retentionPeriod"}, {"window_size_ms", "windowSize", "windowSize"},
            {"segment_interval_ms", "segmentIntervalMs", "segmentInterval"}, {"retain_duplicates", "retainDuplicates", "retainDuplicates"},
            {"history_retention_ms", "historyRetentionMs", "historyRetention"}}) {
            if (supplier != null) {
                if (Read.has(supplier, each[1])) facts.put(each[0], Read.call(supplier, each[1]));
                continue;
            }
            for (final Object layer : layers) {
                final Object segments = Read.fieldOrNull(layer, "segments", "segmentStores");
                final Object value = Read.fieldOrNull(layer, each[2]);
                final Object inner = value == null && segments != null ? Read.fieldOrNull(segments, each[2]) : value;
                if (versioned && each[0].equals("retention_ms")) continue; // that of its segments is not the store's
                if (inner != null) facts.putIfAbsent(each[0], inner);
            }
        }
        for (final Object layer : layers) {
            if (Read.is(layer, STATE + "internals.RocksDBTimeOrderedKeyValueBuffer")) {
                facts.put("grace_ms", Read.field(layer, "gracePeriod"));
            }
            if (Read.is(layer, STATE + "internals.MemoryLRUCache")) {
                facts.put("capacity", Read.fieldOrNull(Read.field(layer, "map"), "val$maxCacheSize"));
            }
        }
    }

    /** A store and what it wraps, from the outermost. */
    private static List<Object> layers(final Object store) {
        final List<Object> found = new ArrayList<>();
        for (Object each = store; each != null;) {
            found.add(each);
            if (Read.is(each, STATE + "internals.WrappedStateStore")) each = Read.call(each, "wrapped");
            else each = each.getClass().getName().endsWith("Adapter") ? Read.fieldOrNull(each, "store", "inner") : null;
        }
        return found;
    }

    private static String kind(final List<Object> layers) {
        for (final String[] each : new String[][] {
            {"VersionedKeyValueStore", "versioned"}, {"SessionStore", "session"}, {"SessionStoreWithHeaders", "session"},
            {"TimestampedWindowStoreWithHeaders", "timestamped-window"}, {"TimestampedWindowStore", "timestamped-window"},
            {"WindowStore", "window"}, {"TimestampedKeyValueStoreWithHeaders", "timestamped-key-value"},
            {"TimestampedKeyValueStore", "timestamped-key-value"}, {"internals.ListValueStore", "list"}, {"KeyValueStore", "key-value"},
            {"internals.TimeOrderedKeyValueBuffer", "buffer"}}) {
            for (final Object layer : layers) {
                if (Read.is(layer, STATE + each[0])) return each[1];
            }
        }
        return null;
    }

    private static List<Object> sorted(final Collection<?> groups) {
        final List<Object> found = new ArrayList<>();
        groups.forEach(each -> found.add(new TreeSet<>((Collection<?>) each)));
        return found;
    }
}
