package kops.runner;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Programs of Programs, one after the other, each run by the runner or by TopologyTestDriver over the same frames.
 *
 * <p>A frame P with "program" and "how" ("run" or "driver") begins each; after its end comes a frame DONE.
 */
public final class RunnerHost {
    private RunnerHost() {}

    public static void main(String[] arguments) throws Exception {
        OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err); // what else prints must not come between the frames
        Frames frames = new Frames(System.in, out);
        for (Frames.Frame frame = frames.read(); frame != null; frame = frames.read()) {
            Map<String, String> request = frame.map();
            Topology topology = Programs.build(request.get("program"));
            Properties settings = Programs.settings(request.get("program"));
            if (request.get("how").equals("run")) {
                Runner.run(topology, settings, () -> again(request.get("program")), System.in, out);
            } else {
                drive(topology, settings, frames);
            }
            frames.write(Frames.DONE, Map.of());
            frames.flush();
        }
    }

    /** Classes stay, captured variables do not. */
    private static Object[] again(String program) throws Exception {
        return new Object[] {Programs.build(program), Programs.settings(program), RunnerHost.class.getClassLoader()};
    }

    /** Records in, and at FINISH all that was written. */
    private static void drive(Topology topology, Properties settings, Frames frames) throws Exception {
        Path state = Files.createTempDirectory("kops-driver");
        settings.put("state.dir", state.toString());
        Frames.Frame frame = frames.read();
        frame.map().forEach((name, value) -> {
            if (name.startsWith("config.")) {
                settings.put(name.substring("config.".length()), value);
            }
        });
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.EPOCH)) {
            frames.write(Frames.HELLO, Map.of());
            frames.flush();
            Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
            for (frame = frames.read(); frame.kind != Frames.FINISH; frame = frames.read()) {
                if (frame.kind == Frames.RECORDS || frame.kind == Frames.GLOBAL) {
                    Batch.Reader batch = new Batch.Reader(frame.body);
                    while (batch.hasNext()) {
                        ConsumerRecord<byte[], byte[]> record = batch.next();
                        inputs.computeIfAbsent(
                                        record.topic(),
                                        name -> driver.createInputTopic(name, new ByteArraySerializer(), new ByteArraySerializer()))
                                .pipeInput(new TestRecord<>(record.key(), record.value(), record.headers(), record.timestamp()));
                    }
                }
                frames.write(Frames.DONE, Map.of());
                frames.flush();
            }
            Batch.Writer rows = new Batch.Writer();
            for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                long offset = 0;
                for (TestRecord<byte[], byte[]> record :
                        driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()).readRecordsToList()) {
                    long timestamp = record.timestamp() == null ? -1 : record.timestamp();
                    rows.add(topic, 0, offset++, timestamp, record.key(), record.value(), Batch.encoded(record.headers()));
                }
            }
            rows.write(frames);
        } finally {
            Application.delete(state.toFile());
        }
    }
}
