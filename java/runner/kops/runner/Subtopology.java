package kops.runner;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The topics of a sub-topology, by their names on the broker. */
final class Subtopology {
    final Set<String> sources;
    final Set<String> repartition;
    final Set<String> changelogs;
    final Set<String> sinks;

    private Subtopology(Object info) {
        sources = names(Versions.get(info, "sourceTopics"));
        sinks = names(Versions.get(info, "sinkTopics"));
        repartition = names(Versions.get(info, "repartitionSourceTopics"));
        changelogs = names(Versions.get(info, "stateChangelogTopics"));
    }

    /**
     * Those of a topology, by number.
     *
     * @param builder its InternalTopologyBuilder, which has built it: the names of changelogs are known after that
     */
    static Map<Integer, Subtopology> of(Object builder) {
        Map<Integer, Subtopology> found = new TreeMap<>();
        Map<?, ?> infos = (Map<?, ?>) Versions.callFirst(builder, "subtopologyToTopicsInfo", "topicGroups");
        infos.forEach((key, info) -> {
            int id = key instanceof Integer ? (Integer) key : (Integer) Versions.get(key, "nodeGroupId");
            found.put(id, new Subtopology(info));
        });
        return found;
    }

    /** What kops compares with a capture. */
    static Map<String, String> facts(Map<Integer, Subtopology> subtopologies) {
        Map<String, String> facts = new LinkedHashMap<>();
        subtopologies.forEach((id, one) -> {
            facts.put("subtopology." + id + ".sources", String.join(",", one.sources));
            facts.put("subtopology." + id + ".repartition", String.join(",", one.repartition));
            facts.put("subtopology." + id + ".changelogs", String.join(",", one.changelogs));
            facts.put("subtopology." + id + ".sinks", String.join(",", one.sinks));
        });
        return facts;
    }

    private static Set<String> names(Object topics) {
        Set<String> names = new TreeSet<>();
        for (Object topic : topics instanceof Map ? ((Map<?, ?>) topics).keySet() : (Collection<?>) topics) {
            names.add((String) topic);
        }
        return names;
    }
}
