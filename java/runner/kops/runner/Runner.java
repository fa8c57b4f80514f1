package kops.runner;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.kafka.streams.Topology;

/**
 * Runs a program's tasks again, over records that come in frames; see Frames.
 *
 * <p>It finds Kafka Streams through its own class loader, which is to be the one of the program's Topology or one below it. What differs
 * from a thread of KafkaStreams: the clock stands still, punctuators on wall-clock time are not called, interceptors of the program's
 * clients neither, and the configuration that a processor can ask for has another state.dir, max.task.idle.ms,
 * buffered.records.per.partition, and at_least_once.
 */
public final class Runner {
    private Runner() {}

    /**
     * Serves requests until there are no more.
     *
     * @param topology the program's org.apache.kafka.streams.Topology
     * @param config what it gave to KafkaStreams beside: Properties, a Map or a StreamsConfig
     * @param again begins the program afresh, and returns these two of it, and the class loader of its context
     */
    public static void run(Object topology, Object config, Callable<Object[]> again, InputStream in, OutputStream out) throws IOException {
        Frames frames = new Frames(new BufferedInputStream(in, 1 << 16), new BufferedOutputStream(out, 1 << 16));
        Application application = null;
        Map<String, String> settings = Map.of();
        List<ByteBuffer> global = new ArrayList<>();
        TaskRun task = null;
        try {
            for (Frames.Frame frame = frames.read(); frame != null && frame.kind != Frames.QUIT; frame = frames.read()) {
                try {
                    Map<String, String> answer = Map.of();
                    int kind = Frames.DONE;
                    switch (frame.kind) {
                        case Frames.CONFIGURE:
                            settings = frame.map();
                            global.clear();
                            nameThread();
                            application = Application.of(topology, config, settings);
                            answer = application.facts();
                            kind = Frames.HELLO;
                            break;
                        case Frames.GLOBAL:
                            needed(application, "an application");
                            global.add(copy(frame.body));
                            application.readGlobal(new Batch.Reader(frame.body));
                            break;
                        case Frames.TASK:
                            needed(application, "an application");
                            if (task != null) {
                                throw new IllegalStateException("a task is there that is not finished");
                            }
                            task = new TaskRun(application, frames, frame.map());
                            break;
                        case Frames.RESTORE:
                            needed(task, "a task");
                            task.begin(frame.body);
                            break;
                        case Frames.RECORDS:
                            needed(task, "a task");
                            task.feed(new Batch.Reader(frame.body));
                            break;
                        case Frames.END:
                            needed(task, "a task");
                            task.end(frame.map().get("topic"));
                            break;
                        case Frames.RESTART:
                            needed(application, "an application");
                            if (task != null) {
                                task.stop();
                            }
                            Application next = restarted(again, application, settings, global);
                            task = task == null ? null : task.continued(next);
                            application.close();
                            application = next;
                            break;
                        case Frames.FINISH:
                            needed(task, "a task");
                            answer = task.finish();
                            task = null;
                            break;
                        default:
                            throw new IOException("a frame of an unknown kind: " + frame.kind);
                    }
                    frames.write(kind, answer);
                } catch (RuntimeException | Error problem) {
                    if (task != null) {
                        task.abandon();
                        task = null;
                    }
                    frames.write(Frames.FAILED, facts(problem));
                }
                frames.flush();
            }
        } finally {
            if (task != null) {
                task.abandon();
            }
            if (application != null) {
                application.close();
            }
        }
    }

    /** The program begun afresh, with its global stores. */
    private static Application restarted(
            Callable<Object[]> again, Application before, Map<String, String> settings, List<ByteBuffer> global) {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        try {
            Object[] begun = again.call();
            if (!(begun[0] instanceof Topology)) {
                throw new IllegalStateException("begun afresh, the program has Kafka Streams of another class loader");
            }
            Thread.currentThread().setContextClassLoader((ClassLoader) begun[2]);
            nameThread();
            Application next = Application.of(begun[0], begun[1], settings);
            if (!next.facts().equals(before.facts())) {
                throw new IllegalStateException("begun afresh, the program has another topology");
            }
            for (ByteBuffer body : global) {
                next.readGlobal(new Batch.Reader(copy(body)));
            }
            return next;
        } catch (Exception | Error problem) {
            Thread.currentThread().setContextClassLoader(loader);
            throw new Application.Failure(problem, "restart", null);
        }
    }

    /** As Kafka Streams does, with an id that is another each time. */
    private static void nameThread() {
        Thread.currentThread().setName("kops-" + UUID.randomUUID() + "-StreamThread-1");
    }

    private static ByteBuffer copy(ByteBuffer body) {
        return body.duplicate().order(body.order());
    }

    private static void needed(Object there, String what) {
        if (there == null) {
            throw new IllegalStateException("there is not " + what + " yet, or it has failed");
        }
    }

    /** What a frame FAILED says. */
    private static Map<String, String> facts(Throwable problem) {
        Map<String, String> facts = new LinkedHashMap<>();
        Throwable thrown = problem instanceof Application.Failure ? problem.getCause() : problem;
        Throwable first = thrown;
        while (first.getCause() != null && first.getCause() != first) {
            first = first.getCause();
        }
        facts.put("by", problem instanceof Application.Failure ? "program" : "runner");
        facts.put("class", first.getClass().getName());
        facts.put("message", String.valueOf(first.getMessage()));
        facts.put("heap", Long.toString(Memory.heap()));
        facts.put("outer_class", thrown.getClass().getName());
        facts.put("outer_message", String.valueOf(thrown.getMessage()));
        if (problem instanceof Application.Failure) {
            Application.Failure failure = (Application.Failure) problem;
            facts.put("phase", failure.phase);
            if (failure.record != null) {
                facts.put("topic", failure.record.topic());
                facts.put("partition", Integer.toString(failure.record.partition()));
                facts.put("offset", Long.toString(failure.record.offset()));
            }
        }
        StringWriter trace = new StringWriter();
        thrown.printStackTrace(new PrintWriter(trace));
        facts.put("trace", trace.toString());
        return facts;
    }
}
