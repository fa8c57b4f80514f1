package kops.agent;

import java.net.URL;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;

/**
 * A topology in the library's own classes, from 2.8 to 4.4: whatever differs between its versions stands here.
 *
 * 2.8 has topicGroups() by number, 3.x and 4.x subtopologyToTopicsInfo() by Subtopology. A store's factory is a nested class in 3.6
 * and before; in 3.9 a StoreFactory that makes stores, in 4.1 one that gives their builder. Reset policies are sets by policy; "none" and
 * "by duration" came with 4.0 (KIP-1106).
 */
final class Library {
    private static final String CONFIG = "org.apache.kafka.streams.StreamsConfig";

    final ClassLoader loader;
    final Object config;
    final Object builder;
    final Object local;
    final Object global;

    private static URL place;

    Library(final Object topology, final Object given) throws ReflectiveOperationException {
        place = place(topology.getClass());
        builder = Read.field(topology, "internalTopologyBuilder");
        loader = builder.getClass().getClassLoader();
        config = given instanceof Properties
            ? Class.forName(CONFIG, true, loader).getConstructor(Map.class).newInstance(given)
            : given;
        Read.call(builder, "rewriteTopology", config);
        local = Read.call(builder, "buildTopology");
        global = Read.call(builder, "buildGlobalStateTopology");
    }

    /** Whether a class is Kafka Streams' own, or of its Scala API: programs too may be in packages of that name, as Apache's examples are. */
    static boolean isOwn(final Class<?> type) {
        final String name = type.getName();
        if (!name.startsWith("org.apache.kafka.streams.")) return false;
        return name.startsWith("org.apache.kafka.streams.scala.") || place == null || place.equals(place(type));
    }

    /** Where a class was loaded from; null: its class loader does not say. */
    static URL place(final Class<?> type) {
        final CodeSource source = type.getProtectionDomain().getCodeSource();
        return source == null ? null : source.getLocation();
    }

    /** Node names by the number of their sub-topology. */
    @SuppressWarnings("unchecked")
    Map<Integer, Collection<String>> nodeGroups() {
        return new TreeMap<>((Map<Integer, Collection<String>>) Read.call(builder, "nodeGroups"));
    }

    /** The numbers of those groups that are a global store's, which no task runs. */
    Collection<?> globalNodes() {
        return (Collection<?>) Read.call(builder, "globalNodeGroups");
    }

    /** TopicsInfo by number of the sub-topology. */
    Map<Integer, Object> topics() {
        final Map<Integer, Object> found = new TreeMap<>();
        final String method = Read.has(builder, "subtopologyToTopicsInfo") ? "subtopologyToTopicsInfo" : "topicGroups";
        for (final Map.Entry<?, ?> entry : ((Map<?, ?>) Read.call(builder, method)).entrySet()) {
            final Object key = entry.getKey();
            found.put(key instanceof Integer ? (Integer) key : (Integer) Read.field(key, "nodeGroupId"), entry.getValue());
        }
        return found;
    }

    Map<?, ?> nodes() {
        return (Map<?, ?>) Read.field(builder, "nodeFactories");
    }

    /** The factory of each store. */
    Map<?, ?> stores() {
        return (Map<?, ?>) Read.field(builder, "stateFactories");
    }

    Map<?, ?> globalStores() {
        return (Map<?, ?>) Read.field(builder, "globalStateBuilders");
    }

    /** The builder that a factory of a store has; null: it makes another for each store, as in 3.9. A builder is its own. */
    static Object storeBuilder(final Object factory) {
        if (Read.is(factory, "org.apache.kafka.streams.state.StoreBuilder")) return factory;
        if (Read.has(factory, "builder")) return Read.call(factory, "builder");
        return Read.fieldOrNull(factory, "builder");
    }

    static Collection<?> users(final Object factory) {
        return (Collection<?>) Read.call(factory, Read.has(factory, "connectedProcessorNames") ? "connectedProcessorNames" : "users");
    }

    /** What buildTopology made of the stores, by name. */
    Map<String, Object> builtStores() {
        final Map<String, Object> found = new LinkedHashMap<>();
        final List<Object> all = new ArrayList<>((Collection<?>) Read.call(local, "stateStores"));
        all.addAll(((Map<?, ?>) Read.field(builder, "globalStateStores")).values());
        for (final Object each : all) found.put((String) Read.call(each, "name"), each);
        return found;
    }

    /** The processors that the program's suppliers made, by node. */
    Map<String, Object> builtProcessors() {
        final Map<String, Object> found = new LinkedHashMap<>();
        for (final Object topology : global == null ? List.of(local) : List.of(local, global)) {
            for (final Object node : (Collection<?>) Read.call(topology, "processors")) {
                Object processor = Read.field(node, "processor");
                if (processor == null) processor = Read.fieldOrNull(node, "fixedKeyProcessor"); // since 3.3
                if (processor != null) found.put((String) Read.call(node, "name"), processor);
            }
        }
        return found;
    }

    Map<?, ?> changelogs() {
        return (Map<?, ?>) Read.call(local, "storeToChangelogTopic");
    }

    /** The changelogs of the stores that some nodes use, with what Kafka Streams sets for them. */
    Map<String, Object> changelogsOf(final Collection<String> nodes) {
        final Map<String, Object> found = new TreeMap<>();
        changelogs().forEach((store, topic) -> {
            final Object factory = stores().get(store);
            if (factory != null && users(factory).stream().anyMatch(nodes::contains)) {
                found.put((String) topic, Read.call(builder, "createChangelogTopicConfig", factory, topic));
            }
        });
        return found;
    }

    /** Where a topic or pattern of a source begins, if the program says so itself: earliest, latest, none, by_duration:PT1H. */
    String reset(final Object topic, final String kind) {
        for (final String policy : List.of("earliest", "latest", "none")) {
            try {
                if (((Collection<?>) Read.field(builder, policy + "Reset" + kind)).stream().anyMatch(each -> same(each, topic))) return policy;
            } catch (final Read.Absent error) {
                if (!policy.equals("none")) throw error; // since 4.0
            }
        }
        try {
            for (final Map.Entry<?, ?> entry : ((Map<?, ?>) Read.field(builder, "durationReset" + kind)).entrySet()) {
                if (same(entry.getKey(), topic)) return "by_duration:" + entry.getValue();
            }
        } catch (final Read.Absent error) {
            return null; // since 4.0
        }
        return null;
    }

    private static boolean same(final Object one, final Object other) {
        return one.toString().equals(other.toString()); // patterns have no equals
    }

    /** An internal topic as it is called on the broker. */
    String decorated(final String topic) {
        return (String) Read.call(builder, "decorateTopic", topic);
    }

    Collection<?> internalTopics() {
        for (final String name : List.of("internalTopicNamesWithProperties", "internalTopicNames")) {
            try {
                final Object found = Read.field(builder, name);
                return found instanceof Map ? ((Map<?, ?>) found).keySet() : (Collection<?>) found;
            } catch (final Read.Absent error) {
                continue;
            }
        }
        throw new Read.Absent("InternalTopologyBuilder has no names of internal topics");
    }

    /** The settings with which Kafka Streams makes an internal topic. */
    Object settings(final Object topicConfig) {
        final Map<?, ?> given = (Map<?, ?>) Read.call(config, "originalsWithPrefix", "topic.");
        final Object longer = Read.call(config, "getLong", "windowstore.changelog.additional.retention.ms");
        return Read.call(topicConfig, Read.has(topicConfig, "properties", 2) ? "properties" : "getProperties", given, longer);
    }

    static Object partitions(final Object topicConfig) {
        return ((Optional<?>) Read.call(topicConfig, "numberOfPartitions")).orElse(null);
    }
}
