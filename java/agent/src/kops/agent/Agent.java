package kops.agent;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.file.Paths;
import java.security.ProtectionDomain;
import java.util.Arrays;
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

    /** Packages of the JDK with classes that may be loaded before this one. */
    private static final List<String> OF_TIME = List.of("java.lang.", "java.time.", "java.util.");
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
        final UnaryOperator<byte[]> silencer = made(own, "kops.rewrite.Silencer");
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    final ClassLoader loader, final String name, final Class<?> before, final ProtectionDomain domain, final byte[] bytes) {
                if (METRICS.equals(name)) return silencer.apply(bytes);
                if (!KAFKA_STREAMS.equals(name)) return null;
                try {
                    return rewriter.apply(bytes);
                } catch (final Throwable error) { // an exception here would be swallowed, and the program would run
                    session.fail("cannot rewrite the class KafkaStreams", error);
                    return null;
                }
            }
        });
        Hook.shift = session.shift();
        if (Hook.shift != 0) shift(made(own, "kops.rewrite.Clock"), instrumentation);
        session.started();
    }

    /** Lets all classes read the time of day as it will be, or was, then: also those that are loaded already. */
    private static void shift(final UnaryOperator<byte[]> clock, final Instrumentation instrumentation) throws UnmodifiableClassException {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    final ClassLoader loader, final String name, final Class<?> before, final ProtectionDomain domain, final byte[] bytes) {
                return name == null || name.startsWith("kops/") ? null : clock.apply(bytes);
            }
        }, true);
        instrumentation.retransformClasses(Arrays.stream(instrumentation.getAllLoadedClasses())
            .filter(each -> OF_TIME.stream().anyMatch(each.getName()::startsWith) && instrumentation.isModifiableClass(each))
            .toArray(Class<?>[]::new));
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
