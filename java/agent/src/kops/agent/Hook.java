package kops.agent;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** What rewritten classes call: the constructors of KafkaStreams first of all, and a program's methods before what differs from run to run. */
public final class Hook {
    static volatile Session session;

    private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();
    private static final Set<String> REFERRED = ConcurrentHashMap.newKeySet();
    private static volatile Thread watched;

    private Hook() {}

    /** Called with the first two arguments of a constructor that is given a Topology; never returns. */
    public static synchronized void constructed(final Object topology, final Object config) {
        session.constructed(topology, config);
    }

    /** Called by a constructor that is given no Topology, which only a changed library calls from outside. */
    public static synchronized void unknown(final String descriptor) {
        session.fail("this library constructs KafkaStreams in a way that kops does not know: KafkaStreams" + descriptor, null);
    }

    /** Called before a call of a clock and the like; counts where a task runs. */
    public static void seen(final String call) {
        if (Thread.currentThread() == watched) SEEN.add(call);
    }

    /** Called before a reference to such a method is made, whoever calls it later; or instead, where a class could not be rewritten. */
    public static void referred(final String call) {
        REFERRED.add(call);
    }

    /** Called by the runner before a task, which this thread runs. */
    public static void watch(final Thread thread) {
        SEEN.clear();
        watched = thread;
    }

    /** What was seen of the task, and all references. */
    public static Set<String> calls() {
        final Set<String> found = new TreeSet<>(SEEN);
        found.addAll(REFERRED);
        return found;
    }
}
