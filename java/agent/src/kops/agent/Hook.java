package kops.agent;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** What rewritten classes call: the constructors of KafkaStreams first of all, and a program's methods before what differs from run to run. */
public final class Hook {
    static volatile Session session;

    private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();
    private static final Set<String> REFERRED = ConcurrentHashMap.newKeySet();
    private static final Set<String> INITIAL = ConcurrentHashMap.newKeySet();
    private static final int MOST_INITIAL = 10_000;
    private static final String ENVIRONMENT = ": System.getenv";
    private static volatile Thread watched;

    private Hook() {}

    /** Called before the next one, where a constructor is also given the program's KafkaClientSupplier. */
    public static synchronized void supplied(final Object supplier) {
        session.supplied(supplier);
    }

    /** Called with the first two arguments of a constructor that is given a Topology; never returns. */
    public static synchronized void constructed(final Object topology, final Object config) {
        session.constructed(topology, config);
    }

    /** Called by a constructor that is given no Topology, which only a changed library calls from outside. */
    public static synchronized void unknown(final String descriptor) {
        session.fail("this library constructs KafkaStreams in a way that kops does not know: KafkaStreams" + descriptor, null);
    }

    /** Called before a call of a clock and the like; counts where a task runs, but not where that only loads a class, as from a jar in a jar. */
    public static void seen(final String call) {
        final boolean counts = Thread.currentThread() == watched;
        if (counts && !SEEN.contains(call) && !loads()) SEEN.add(call);
        if (!counts && isInitial(call)) initial(call);
    }

    private static void initial(final String call) {
        if (INITIAL.size() < MOST_INITIAL) INITIAL.add(call);
    }

    /** Whether it is a constructor or static initializer that calls: what that gets may be kept, and used in a task. */
    private static boolean isInitial(final String call) {
        return call.contains(".<clinit>: ") || call.contains(".<init>: ");
    }

    /** Whether a class loader is at work, in what the task calls. */
    private static boolean loads() {
        return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).walk(frames -> frames
            .takeWhile(frame -> !frame.getClassName().startsWith("kops.runner."))
            .anyMatch(frame -> ClassLoader.class.isAssignableFrom(frame.getDeclaringClass())));
    }

    /**
     * Called before a reference to such a method is made, whoever calls it later; or instead, where a class could not be rewritten.
     *
     * <p>Launchers, such as Spring Boot's, refer to the environment while the program starts, which says nothing of what a task does: outside
     * of tasks such a reference is an initial call.
     */
    public static void referred(final String call) {
        if (call.endsWith(ENVIRONMENT) && Thread.currentThread() != watched) {
            initial(call);
        } else {
            REFERRED.add(call);
        }
    }

    /** Called by the runner after a task: charset, locale and zone of the JVM, and what was read until then, as JSON. */
    public static String surroundings() {
        return Json.text(Surroundings.now());
    }

    /** Called by the runner before a task, which this thread runs. */
    public static void watch(final Thread thread) {
        SEEN.clear();
        watched = thread;
    }

    /** What constructors and static initializers called outside of tasks, as while the program started, and references to the environment. */
    public static Set<String> initialCalls() {
        return new TreeSet<>(INITIAL);
    }

    /** What was seen of the task, and all references. */
    public static Set<String> calls() {
        final Set<String> found = new TreeSet<>(SEEN);
        found.addAll(REFERRED);
        return found;
    }
}
