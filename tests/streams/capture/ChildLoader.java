import java.io.File;
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
        final ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getSystemClassLoader());
        Thread.currentThread().setContextClassLoader(loader);
        Class.forName(arguments[0], true, loader).getMethod("main", String[].class).invoke(null, (Object) new String[0]);
    }
}
