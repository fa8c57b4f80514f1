package kops.agent;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Paths;
import java.security.ProtectionDomain;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Stops a program where it constructs KafkaStreams.
 *
 * The jar is on the bootstrap class path (Boot-Class-Path of its manifest), so every class loader finds Hook, and sees only the
 * packages kops.agent. The library that rewrites the constructor is kept below "private/", where no class loader of a
 * program finds it.
 */
public final class Agent {
    static final String KAFKA_STREAMS = "org/apache/kafka/streams/KafkaStreams";

    /** What keeps time for itself, and not for what it computes: logs, metrics, the JDK; and clients of registries, whose answers do not change. */
    private static final List<String> UNWATCHED = List.of("java/", "javax/", "jdk/", "sun/", "com/sun/", "kops/", "org/apache/kafka/",
        "org/rocksdb/", "org/slf4j/", "ch/qos/logback/", "org/apache/logging/", "org/apache/log4j/", "org/apache/commons/logging/",
        "org/jboss/logging/", "org/jboss/logmanager/", "io/micrometer/", "io/opentelemetry/", "io/prometheus/", "com/codahale/metrics/",
        "io/dropwizard/metrics/", "io/confluent/kafka/schemaregistry/", "io/confluent/kafka/serializers/", "io/apicurio/");
    private static final String EXAMPLES = "org/apache/kafka/streams/examples/";

    /** Ports that the JVM itself opens for its management, which the application that runs beside, or another start of this one, may have. */
    private static final List<String> MANAGEMENT = List.of("com.sun.management.jmxremote.port", "com.sun.management.jmxremote.rmi.port");
    /** The agent that serves metrics at a port of its own. */
    private static final String METRICS = "io/prometheus/jmx/JavaAgent";

    private Agent() {}

    /** @param folder where its settings are, and where it writes what it found */
    public static void premain(final String folder, final Instrumentation instrumentation) throws Exception {
        final Session session = new Session(Paths.get(folder));
        Hook.session = session;
        MANAGEMENT.forEach(System::clearProperty); // the JVM looks at them after this
        final ClassLoader own = own();
        Surroundings.watch(instrumentation, session, made(own, "kops.rewrite.Recorder"));
        final UnaryOperator<byte[]> rewriter = made(own, "kops.rewrite.Rewriter");
        final UnaryOperator<byte[]> watcher = made(own, "kops.rewrite.Watcher");
        final UnaryOperator<byte[]> silencer = made(own, "kops.rewrite.Silencer");
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    final ClassLoader loader, final String name, final Class<?> before, final ProtectionDomain domain, final byte[] bytes) {
                if (METRICS.equals(name)) return silencer.apply(bytes);
                if (!KAFKA_STREAMS.equals(name)) return session.runs() && loader != null && isWatched(name) ? watched(watcher, name, bytes) : null;
                try {
                    return rewriter.apply(bytes);
                } catch (final Throwable error) { // an exception here would be swallowed, and the program would run
                    session.fail("cannot rewrite the class KafkaStreams", error);
                    return null;
                }
            }
        });
        session.started();
    }

    private static boolean isWatched(final String name) {
        return name != null && (name.startsWith(EXAMPLES) || UNWATCHED.stream().noneMatch(name::startsWith));
    }

    private static byte[] watched(final UnaryOperator<byte[]> watcher, final String name, final byte[] bytes) {
        try {
            return watcher.apply(bytes);
        } catch (final Throwable error) {
            Hook.referred(name.replace('/', '.') + ": what it calls could not be seen");
            return null;
        }
    }

    @SuppressWarnings("unchecked")
    private static UnaryOperator<byte[]> made(final ClassLoader own, final String name) throws ReflectiveOperationException {
        return (UnaryOperator<byte[]>) own.loadClass(name).getDeclaredConstructor().newInstance();
    }

    private static ClassLoader own() {
        return new ClassLoader(null) {
            @Override
            protected Class<?> findClass(final String name) throws ClassNotFoundException {
                final String place = "private/" + name.replace('.', '/') + ".class";
                try (InputStream stream = ClassLoader.getSystemResourceAsStream(place)) {
                    if (stream == null) throw new ClassNotFoundException(name);
                    final byte[] bytes = stream.readAllBytes();
                    return defineClass(name, bytes, 0, bytes.length);
                } catch (final IOException error) {
                    throw new ClassNotFoundException(name, error);
                }
            }
        };
    }
}
