import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

/** Stands in for a runner: answers with what it read, and what it was given. */
public final class EchoRunner {
    private EchoRunner() {}

    public static void run(final Object topology, final Object config, final InputStream in, final OutputStream out) throws Exception {
        final Method describe = topology.getClass().getMethod("describe");
        final boolean described = describe.invoke(topology).toString().startsWith("Topologies:");
        final String read = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        out.write((read + " " + described + " " + config.getClass().getName()).getBytes(StandardCharsets.UTF_8));
    }
}
