package kops.agent;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.stream.Stream;

/** A folder that kops and the JVM share: settings in, what was found out. */
final class Session {
    /** With which the JVM ends after a capture: not success, so that a script does not continue as if the program had ended by itself. */
    private static final int CAPTURED = 86;
    private static final int FAILED = 87;
    private static final long LOOK_MILLISECONDS = 200;
    private static final long TAKEN_MILLISECONDS = 10;

    private final Path folder;
    private final Properties settings = new Properties();
    private final Runnable defaults = Afresh.defaults();
    private volatile Object supplier;
    private Afresh again;

    Session(final Path folder) throws IOException {
        this.folder = folder;
        try (BufferedReader reader = Files.newBufferedReader(folder.resolve("agent.properties"))) {
            settings.load(reader);
        }
    }

    String setting(final String name) {
        return settings.getProperty(name);
    }

    boolean runs() {
        return "run".equals(setting("mode"));
    }

    /** By how many milliseconds the time of day is to be another. */
    long shift() {
        return Long.parseLong(settings.getProperty("clock.shift", "0"));
    }

    void supplied(final Object given) {
        supplier = given;
    }

    /** That of the program's KafkaClientSupplier; null where it is the library's default. */
    String supplierClass() {
        return supplier == null ? null : Read.className(supplier);
    }

    /** Leave a note that this JVM is under the agent. */
    void started() throws IOException {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("pid", ProcessHandle.current().pid());
        write("started-" + ProcessHandle.current().pid() + ".json", facts);
        if (runs()) endWith(setting("processes").split(","));
    }

    void constructed(final Object topology, final Object config) {
        try {
            if (runs()) run(topology, config);
            else write("capture.json", new Capture(this, topology, config).facts());
        } catch (final Throwable error) {
            fail(runs() ? "the runner failed" : "cannot read the topology", error);
        }
        end(runs() ? 0 : CAPTURED);
    }

    /**
     * Hand the topology to the runner, which sees the program's classes, and answers over a connection to kops: the JVM's own streams are
     * the program's, and of the scripts that started it.
     */
    private void run(final Object topology, final Object config) throws Exception {
        Surroundings.of((String) (config instanceof Map ? ((Map<?, ?>) config).get("application.id") : Read.call(config, "getString", "application.id")));
        final Class<?> runner = runner(topology);
        final Method method =
            runner.getMethod("run", Object.class, Object.class, Callable.class, InputStream.class, OutputStream.class);
        again = new Afresh(topology.getClass().getClassLoader(), defaults, Long.parseLong(setting("seconds")));
        final Properties taker = taker();
        if (setting("pipe.in") != null) { // there is no network, not even a loopback address
            try (InputStream in = new FileInputStream(setting("pipe.in")); OutputStream out = new FileOutputStream(setting("pipe.out"))) {
                serve(taker, method, topology, config, in, out);
            }
            return;
        }
        try (Socket socket = new Socket(InetAddress.getByName("127.0.0.1"), Integer.parseInt(taker.getProperty("port")))) {
            socket.setTcpNoDelay(true);
            serve(taker, method, topology, config, socket.getInputStream(), socket.getOutputStream());
        }
    }

    private void serve(final Properties taker, final Method method, final Object topology, final Object config, final InputStream in,
            final OutputStream out) throws Exception {
        out.write(taker.getProperty("token").getBytes(StandardCharsets.US_ASCII)); // by which kops knows it: any process may connect
        method.invoke(null, topology, config, again, in, out);
    }

    /** Who is to speak with the runner: known from the start, or when somebody takes this program, which was started ahead. */
    private Properties taker() throws IOException, InterruptedException {
        if (setting("taken.file") == null) return settings;
        final Path file = folder.resolve(setting("taken.file"));
        while (!Files.exists(file)) Thread.sleep(TAKEN_MILLISECONDS);
        final Properties taker = new Properties();
        try (BufferedReader reader = Files.newBufferedReader(file)) {
            taker.load(reader);
        }
        endWith(taker.getProperty("process"));
        return taker;
    }

    private Class<?> runner(final Object topology) throws IOException, ClassNotFoundException {
        write("class-path.json", ClassPath.facts(
            unknown -> { }, // said when it was captured
            topology.getClass().getClassLoader(), Thread.currentThread().getContextClassLoader()));
        final URL[] jars = {Paths.get(setting("runner.jar")).toUri().toURL()};
        final ClassLoader loader = new URLClassLoader(jars, topology.getClass().getClassLoader());
        return Class.forName(setting("runner.class"), true, loader);
    }

    /** End this JVM with any of the processes that want it, whatever the program is doing then. */
    private void endWith(final String... processes) {
        final Thread thread = new Thread(() -> {
            try {
                while (Files.exists(folder) && Stream.of(processes).allMatch(Session::lives)) {
                    Thread.sleep(LOOK_MILLISECONDS);
                }
            } catch (final InterruptedException noLonger) { // nobody can: the thread is not the program's
            }
            Runtime.getRuntime().halt(FAILED);
        }, "kops-watch");
        thread.setDaemon(true);
        thread.start();
    }

    /** Whether a process runs; one that has ended, of which its parent has not heard yet, does not. */
    private static boolean lives(final String process) {
        if (ProcessHandle.of(Long.parseLong(process)).isEmpty()) return false;
        try {
            final String stat = new String(Files.readAllBytes(Paths.get("/proc", process, "stat")), StandardCharsets.UTF_8);
            return stat.charAt(stat.lastIndexOf(')') + 2) != 'Z';
        } catch (final IOException otherSystem) {
            return true;
        }
    }

    void fail(final String what, final Throwable error) {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("problem", what);
        facts.put("error", error == null ? null : Read.root(error).toString());
        facts.put("missing_class", missing(error));
        final StringWriter trace = new StringWriter();
        if (error != null) error.printStackTrace(new PrintWriter(trace));
        facts.put("trace", trace.toString());
        try {
            write("failure.json", facts);
        } catch (final Throwable second) {
            second.printStackTrace();
        }
        end(FAILED);
    }

    private static String missing(final Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof ClassNotFoundException || each instanceof NoClassDefFoundError) return each.getMessage().replace('/', '.');
        }
        return null;
    }

    private static void end(final int code) {
        System.out.flush();
        System.err.flush();
        Runtime.getRuntime().halt(code);
    }

    private void write(final String name, final Object facts) throws IOException {
        final Path part = folder.resolve(name + ".part");
        Files.write(part, Json.text(facts).getBytes(StandardCharsets.UTF_8));
        Files.move(part, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    }

    /** The words with which the JVM was started. */
    static List<String> command() throws IOException {
        final ProcessHandle.Info info = ProcessHandle.current().info();
        final List<String> words = new ArrayList<>();
        words.add(info.command().orElse("java"));
        final Path all = Paths.get("/proc/self/cmdline"); // of Linux, where ProcessHandle has none that are longer than 4 KB
        if (Files.isReadable(all)) {
            final String[] given = new String(Files.readAllBytes(all), StandardCharsets.UTF_8).split("\0", -1);
            words.addAll(List.of(given).subList(1, given.length - 1)); // each word ends with a zero
        } else if (info.arguments().isPresent()) {
            words.addAll(List.of(info.arguments().get()));
        } else {
            words.addAll(List.of("-cp", System.getProperty("java.class.path"), System.getProperty("sun.java.command", "")));
        }
        return words;
    }
}
