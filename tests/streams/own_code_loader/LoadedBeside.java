import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;

/** A program whose class path does not have the runner: it is loaded by a class loader of its own, below the program's. */
public final class LoadedBeside {
    private LoadedBeside() {}

    public static void main(String[] arguments) throws Exception {
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in").groupByKey().count(Materialized.as("counts"));
        Topology topology = builder.build();
        Properties settings = new Properties();
        settings.put("application.id", "app");
        settings.put("bootstrap.servers", "unused:1");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        URL runner = new File(arguments[0]).toURI().toURL();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {runner}, topology.getClass().getClassLoader())) {
            loader.loadClass("kops.runner.Runner")
                    .getMethod("run", Object.class, Object.class, Callable.class, InputStream.class, OutputStream.class)
                    .invoke(null, topology, settings, null, System.in, out); // it is not begun again
        }
    }
}
