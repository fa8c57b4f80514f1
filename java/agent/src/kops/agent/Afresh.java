package kops.agent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;

/**
 * Begins the program again within its JVM: its main runs in a thread of its own, and its classes are loaded by another class loader, so that
 * static fields, captured variables and what else it holds are as when a process starts.
 *
 * Kafka's own classes and RocksDB's, which has a native library, stay: what the program makes of them is handed to the runner that is there.
 * The thread waits for ever where it constructs KafkaStreams, as the first does.
 */
final class Afresh implements Callable<Object[]> {
    private static final List<String> OF_KAFKA =
        List.of("org.apache.kafka.clients.", "org.apache.kafka.common.", "org.apache.kafka.streams.", "org.rocksdb.");
    private static final List<String> NOT_OF_KAFKA = List.of("org.apache.kafka.streams.scala.", "org.apache.kafka.streams.examples.");
    private static final List<String> WITH_KAFKA =
        List.of("org.apache.kafka.streams.KafkaStreams", "org.apache.kafka.common.TopicPartition", "org.rocksdb.RocksDB");

    /** By name. */
    private static final Map<String, Found> FOUND = new ConcurrentHashMap<>();

    private static volatile Start latest;

    private final ClassLoader library;
    private final Runnable defaults;
    private final long seconds;
    private final Set<URL> places = new HashSet<>();

    /**
     * @param library the class loader of Kafka's classes
     * @param defaults sets those of the JVM
     * @param seconds how long the program may take to construct KafkaStreams
     */
    Afresh(final ClassLoader library, final Runnable defaults, final long seconds) {
        this.library = library;
        this.defaults = defaults;
        this.seconds = seconds;
        for (final String name : WITH_KAFKA) {
            try {
                places.add(Library.place(Class.forName(name, false, library)));
            } catch (final ClassNotFoundException | LinkageError absent) {
                continue;
            }
        }
    }

    /** Returns what sets properties, languages and time zone of the JVM as they are now: a program may set them later. */
    static Runnable defaults() {
        final Properties properties = (Properties) System.getProperties().clone();
        final Locale locale = Locale.getDefault();
        final Map<Locale.Category, Locale> locales = new EnumMap<>(Locale.Category.class);
        for (final Locale.Category each : Locale.Category.values()) locales.put(each, Locale.getDefault(each));
        return () -> {
            System.setProperties((Properties) properties.clone());
            Locale.setDefault(locale);
            locales.forEach(Locale::setDefault);
            TimeZone.setDefault(null); // as the properties have it
        };
    }

    /** Takes what a program that was begun afresh gives to KafkaStreams, and does not return then. */
    static void take(final Object topology, final Object config) {
        final Start start = latest;
        if (start == null || !start.isCaller()) return;
        start.made.add(new Object[] {topology, config, Thread.currentThread().getContextClassLoader()});
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (final InterruptedException noReason) { // the program may interrupt its threads; there is nothing to return to
                continue;
            }
        }
    }

    @Override
    public Object[] call() throws Exception {
        defaults.run();
        final List<String> words = words();
        final Start start = new Start();
        latest = start;
        final ClassLoader loader = new Loader();
        final Thread main = new Thread(start.group, () -> start.run(loader, words), "main");
        main.setContextClassLoader(loader);
        main.setDaemon(true);
        main.start();
        final Object made = start.made.poll(seconds, TimeUnit.SECONDS);
        if (made instanceof Throwable) throw new IllegalStateException("begun afresh, the program threw " + made, (Throwable) made);
        if (made == null) throw new IllegalStateException("begun afresh, the program has not constructed KafkaStreams");
        return (Object[]) made;
    }

    /** The main class or jar, and the words behind it. */
    private static List<String> words() throws IOException {
        final String all = System.getProperty("sun.java.command", "");
        final List<String> words = Session.command();
        for (int from = 1; from < words.size(); from++) {
            final List<String> last = words.subList(from, words.size());
            if (String.join(" ", last).equals(all)) return last;
        }
        return Arrays.asList(all.split(" ")); // as with a file of arguments
    }

    private static String mainClass(final String word) throws IOException {
        if (word.endsWith(".jar") && Files.isRegularFile(Paths.get(word))) {
            try (JarFile jar = new JarFile(word)) {
                return jar.getManifest().getMainAttributes().getValue("Main-Class");
            }
        }
        return word.substring(word.indexOf('/') + 1); // of a module
    }

    private static URL[] urls() throws IOException {
        final List<URL> urls = new ArrayList<>();
        for (final String property : List.of("java.class.path", "jdk.module.path")) {
            for (final String each : System.getProperty(property, "").split(File.pathSeparator)) {
                if (each.isEmpty()) continue;
                final Path path = Paths.get(each);
                urls.add(path.toUri().toURL());
            }
        }
        return urls.toArray(new URL[0]);
    }

    /** One time that the program is begun. */
    private static final class Start {
        private final ThreadGroup group = new ThreadGroup("begun afresh");
        private final BlockingQueue<Object> made = new LinkedBlockingQueue<>();

        /** Whether a thread is one that this start has led to. */
        private boolean isCaller() {
            for (ThreadGroup each = Thread.currentThread().getThreadGroup(); each != null; each = each.getParent()) {
                if (each == group) return true;
            }
            return false;
        }

        private void run(final ClassLoader loader, final List<String> words) {
            try {
                final Method main = Class.forName(mainClass(words.get(0)), true, loader).getMethod("main", String[].class);
                main.setAccessible(true);
                main.invoke(null, (Object) words.subList(1, words.size()).toArray(new String[0]));
            } catch (final InvocationTargetException error) {
                made.add(error.getCause());
            } catch (final Throwable error) {
                made.add(error);
            }
        }
    }

    /** A class as the first loader of a program that was begun afresh has found it: the next need not open its jar. */
    private static final class Found {
        private final CodeSource source;
        private final Package itsPackage;
        private final SoftReference<byte[]> bytes;

        Found(final Class<?> known, final byte[] bytes) {
            this.source = known.getProtectionDomain().getCodeSource();
            this.itsPackage = known.getPackage();
            this.bytes = new SoftReference<>(bytes);
        }
    }

    private final class Loader extends URLClassLoader {
        Loader() throws IOException {
            super(urls(), ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(final String name) throws ClassNotFoundException {
            final Found found = FOUND.get(name);
            final byte[] bytes = found == null ? null : found.bytes.get();
            if (bytes == null) {
                final Class<?> known = super.findClass(name);
                keep(known);
                return known;
            }
            final Package of = found.itsPackage;
            if (of != null && getDefinedPackage(of.getName()) == null) {
                definePackage(of.getName(), of.getSpecificationTitle(), of.getSpecificationVersion(), of.getSpecificationVendor(),
                    of.getImplementationTitle(), of.getImplementationVersion(), of.getImplementationVendor(), null);
            }
            return defineClass(name, bytes, 0, bytes.length, found.source);
        }

        private void keep(final Class<?> known) {
            if (known.getSigners() != null || known.getPackage() != null && known.getPackage().isSealed()) return;
            final URL url = findResource(known.getName().replace('.', '/') + ".class");
            if (url == null) return;
            try (InputStream stream = url.openStream()) {
                FOUND.put(known.getName(), new Found(known, stream.readAllBytes()));
            } catch (final IOException unreadable) { // the next loader reads it as this one has
                FOUND.remove(known.getName());
            }
        }

        @Override
        protected Class<?> loadClass(final String name, final boolean resolve) throws ClassNotFoundException {
            if (OF_KAFKA.stream().anyMatch(name::startsWith) && NOT_OF_KAFKA.stream().noneMatch(name::startsWith)) {
                try {
                    final Class<?> known = library.loadClass(name);
                    if (places.contains(Library.place(known))) return known;
                } catch (final ClassNotFoundException absent) {
                    return super.loadClass(name, resolve);
                }
            }
            return super.loadClass(name, resolve);
        }
    }
}
