import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/** Starts a program as the launcher of a fat jar does: by a class loader whose parents have no Kafka Streams. */
public final class ChildLoader {
    private ChildLoader() {}

    public static void main(final String[] arguments) throws Exception {
        final List<URL> urls = new ArrayList<>();
        for (final String each : arguments[1].split(File.pathSeparator)) urls.add(Paths.get(each).toUri().toURL());
        final URLClassLoader open = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getSystemClassLoader());
        final ClassLoader loader = arguments.length > 2 ? new Hidden(open) : open;
        Thread.currentThread().setContextClassLoader(loader);
        Class.forName(arguments[0], true, loader).getMethod("main", String[].class).invoke(null, (Object) new String[0]);
    }

    /** Takes classes from another loader, and does not say so. */
    private static final class Hidden extends ClassLoader {
        private final URLClassLoader from;

        Hidden(final URLClassLoader from) {
            super(ClassLoader.getSystemClassLoader());
            this.from = from;
        }

        @Override
        protected Class<?> findClass(final String name) throws ClassNotFoundException {
            try (InputStream stream = from.getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (stream == null) throw new ClassNotFoundException(name);
                final byte[] bytes = stream.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (final IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }

        @Override
        public URL getResource(final String name) {
            return from.getResource(name);
        }
    }
}
