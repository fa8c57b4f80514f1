package kops.agent;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** Rewrites those classes of the JDK by which all variables are read and all files are opened, so that they call Reads. */
final class Recording {
    private static final List<String> CLASSES = List.of("java.lang.ProcessEnvironment$StringEnvironment",
        "java.lang.ProcessEnvironment$StringEntry", "java.lang.ProcessEnvironment$StringKeySet", "java.io.FileInputStream",
        "java.io.FileOutputStream", "java.io.RandomAccessFile", "java.net.InetAddress", "sun.nio.fs.UnixChannelFactory");
    private static volatile String failure;

    private Recording() {}

    static void start(final Instrumentation instrumentation, final UnaryOperator<byte[]> rewriter)
            throws ClassNotFoundException, UnmodifiableClassException {
        final ClassFileTransformer transformer = new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    final ClassLoader loader, final String name, final Class<?> before, final ProtectionDomain domain, final byte[] bytes) {
                if (loader != null || name == null || !CLASSES.contains(name.replace('/', '.'))) return null;
                try {
                    return rewriter.apply(bytes);
                } catch (final Throwable error) { // an exception here would be swallowed
                    fail(name.replace('/', '.') + ": " + error);
                    return null;
                }
            }
        };
        final List<Class<?>> classes = new ArrayList<>();
        for (final String name : CLASSES) classes.add(Class.forName(name, false, null)); // what they read then, they read when the program needs them
        instrumentation.addTransformer(transformer, true);
        instrumentation.retransformClasses(classes.toArray(new Class<?>[0]));
        instrumentation.removeTransformer(transformer);
    }

    static void fail(final String why) {
        failure = why;
    }

    /** Why not all reads were seen; null: they were. */
    static String failure() {
        return failure;
    }
}
