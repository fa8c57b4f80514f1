package kops.agent;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Paths;
import java.security.ProtectionDomain;
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

    private Agent() {}

    /** @param folder where its settings are, and where it writes what it found */
    public static void premain(final String folder, final Instrumentation instrumentation) throws Exception {
        final Session session = new Session(Paths.get(folder));
        Hook.session = session;
        final UnaryOperator<byte[]> rewriter = rewriter();
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    final ClassLoader loader, final String name, final Class<?> before, final ProtectionDomain domain, final byte[] bytes) {
                if (!KAFKA_STREAMS.equals(name)) return null;
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

    @SuppressWarnings("unchecked")
    private static UnaryOperator<byte[]> rewriter() throws ReflectiveOperationException {
        final ClassLoader own = new ClassLoader(null) {
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
        return (UnaryOperator<byte[]>) own.loadClass("kops.rewrite.Rewriter").getDeclaredConstructor().newInstance();
    }
}
