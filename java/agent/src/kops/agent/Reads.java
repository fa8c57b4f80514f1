package kops.agent;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;

/**
 * What a program, or a library of it, asks of its surroundings by name: environment variables, system properties, files.
 *
 * <p>The JDK's own classes call this, below all the ways to ask: System.getenv and the map that it returns, Long.getLong, Files.readString. Who
 * asks is the first class on the stack that is not the JDK's. What Kafka and RocksDB ask for themselves does not count, nor what only logs and
 * measures; Kafka's providers of settings ask for the program.
 */
public final class Reads {
    /** Of a program that makes names up, as for each record. */
    private static final int MOST_NAMES = 10_000;
    private static final StackWalker STACK = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    private static final ThreadLocal<Boolean> LOOKING = new ThreadLocal<>();
    private static final List<String> FOR_THE_PROGRAM = List.of("org.apache.kafka.streams.examples.", "org.apache.kafka.common.config.provider.");
    private static final List<String> FOR_THEMSELVES = List.of("org.apache.kafka.", "org.rocksdb.", "org.slf4j.", "ch.qos.logback.",
        "org.apache.logging.", "org.apache.log4j.", "org.apache.commons.logging.", "org.jboss.logging.", "org.jboss.logmanager.", "io.micrometer.",
        "io.opentelemetry.", "io.prometheus.", "com.codahale.metrics.", "io.dropwizard.metrics.");
    /** Packages of the JDK that ask for whoever calls them, as Long.getLong does; others ask for what they themselves need. */
    private static final Set<String> PASS_ON = Set.of("java.lang", "java.util", "java.util.function", "java.util.stream", "java.util.concurrent",
        "java.lang.reflect", "jdk.internal.reflect", "java.lang.invoke", "java.security");

    /** By name, the class that asked. */
    static final Map<String, String> VARIABLES = new ConcurrentHashMap<>();
    /** Those whose values were read with all others, as by a copy of the map. */
    static final Map<String, String> COPIED_VARIABLES = new ConcurrentHashMap<>();
    static final Map<String, String> PROPERTIES = new ConcurrentHashMap<>();
    /** Those that were read with all others, or that the JDK asked for while the class called it. */
    static final Map<String, String> OTHER_PROPERTIES = new ConcurrentHashMap<>();
    static final Map<String, String> FILES = new ConcurrentHashMap<>();
    /** Who asked for the name of the host. */
    static final AtomicReference<String> HOST = new AtomicReference<>();
    /** What the program set or wrote itself: no surroundings of it. */
    private static final Set<String> OWN_PROPERTIES = ConcurrentHashMap.newKeySet();
    private static final Set<String> OWN_FILES = ConcurrentHashMap.newKeySet();

    private Reads() {}

    public static void variable(final Object name) {
        note(name, VARIABLES, VARIABLES);
    }

    /** Called before the value of an entry of the environment is read. */
    public static void entry(final Object entry) {
        note(((Map.Entry<?, ?>) entry).getKey(), COPIED_VARIABLES, COPIED_VARIABLES);
    }

    /** Called before the values of all variables are read, without their names. */
    public static void values() {
        if (LOOKING.get() == null) System.getenv().forEach((name, value) -> { }); // reads the value of each entry
    }

    /** Called before a file is opened. @param writes not 0: the program writes it */
    public static void file(final Object path, final int writes) {
        final String name = path == null ? "" : path.toString();
        if (writes == 0 && !OWN_FILES.contains(name)) note(name, FILES, null);
        if (writes != 0 && OWN_FILES.size() < MOST_NAMES) OWN_FILES.add(name);
    }

    /** Called before the program asks for the name of its host. */
    public static void host() {
        final Map<String, String> found = new ConcurrentHashMap<>();
        if (HOST.get() == null) note("", found, found);
        HOST.compareAndSet(null, found.get(""));
    }

    static void property(final Object name) {
        if (!OWN_PROPERTIES.contains(name)) note(name, PROPERTIES, OTHER_PROPERTIES);
    }

    static void copiedProperty(final Object name) {
        if (!OWN_PROPERTIES.contains(name)) note(name, OTHER_PROPERTIES, OTHER_PROPERTIES);
    }

    static void ownProperty(final Object name) {
        if (name instanceof String) OWN_PROPERTIES.add((String) name);
    }

    /** @param indirect where it goes that the JDK reads for what it itself needs; null: that is as if the class had read it */
    private static void note(final Object name, final Map<String, String> direct, final Map<String, String> indirect) {
        if (!(name instanceof String) || direct.containsKey(name) || LOOKING.get() != null) return;
        if (direct.size() >= MOST_NAMES) {
            Recording.fail("more than " + MOST_NAMES + " names were read");
            return;
        }
        LOOKING.set(true);
        try {
            final Asker asker = STACK.walk(frames -> asker(frames.iterator()));
            if (asker.name == null || indirect == null && asker.loads) return;
            (asker.direct || indirect == null ? direct : indirect).putIfAbsent((String) name, asker.name);
        } finally {
            LOOKING.remove();
        }
    }

    private static final class Asker {
        String name;
        boolean direct = true;
        boolean loads;
    }

    private static Asker asker(final Iterator<StackWalker.StackFrame> frames) {
        final Asker found = new Asker();
        while (frames.hasNext()) {
            final Class<?> type = frames.next().getDeclaringClass();
            final String name = type.getName();
            if (name.startsWith("kops.")) continue;
            found.loads |= ClassLoader.class.isAssignableFrom(type);
            if (!isOfJdk(type)) {
                if (FOR_THE_PROGRAM.stream().anyMatch(name::startsWith) || FOR_THEMSELVES.stream().noneMatch(name::startsWith)) found.name = name;
                return found;
            }
            found.direct &= PASS_ON.contains(type.getPackageName());
        }
        return found;
    }

    private static boolean isOfJdk(final Class<?> type) {
        return type.getClassLoader() == null || type.getClassLoader() == ClassLoader.getPlatformClassLoader();
    }

    static Map<String, String> sorted(final Map<String, String> found) {
        return new TreeMap<>(found);
    }
}
