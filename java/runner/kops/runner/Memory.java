package kops.runner;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * How much of the JVM's memory the stores and the last rows of a task may take together: beyond it, the largest goes to RocksDB.
 *
 * <p>How large a state becomes is known when it is there. So each begins in memory, and what outgrows it continues where the program itself
 * would keep it: in the library's own RocksDB store of bytes, with the program's settings for it, which has the same order of keys.
 */
final class Memory {
    /** Set to a number of bytes, this is the limit. */
    private static final String LIMIT = "kops.memory.bytes";

    private final StreamsConfig config;
    private final Object metrics;
    private final TaskId task;
    private final Path parent;
    private final long most;
    private final List<Holder> holders = new ArrayList<>();
    private final Set<String> moved = new TreeSet<>();
    private final List<KeyValueStore<Bytes, byte[]>> disks = new ArrayList<>();
    private Path folder;

    /**
     * @param parent a folder for what goes to the disk
     * @param apart bytes of the JVM's memory that are not for this
     */
    Memory(StreamsConfig config, Object metrics, TaskId task, Path parent, long apart) {
        this.config = config;
        this.metrics = metrics;
        this.task = task;
        this.parent = parent;
        this.most = Math.max(0, Long.getLong(LIMIT, heap() / 2 - apart)); // a table that grows is there twice for a moment
    }

    /** The most that the JVM's heap can take. */
    static long heap() {
        return Runtime.getRuntime().maxMemory();
    }

    void add(Holder holder) {
        holders.add(holder);
    }

    /** Looks whether all is too much, after one has grown: at a moment when none of them is in the middle of something. */
    void grown() {
        while (taken() > most) {
            Holder largest = holders.stream().max(Comparator.comparingLong(Holder::bytes)).get();
            moved.add(largest.name());
            largest.toDisk();
        }
    }

    /** How much they take now. */
    long taken() {
        return holders.stream().mapToLong(Holder::bytes).sum();
    }

    /** The names of those that went to the disk. */
    Set<String> moved() {
        return moved;
    }

    /** Returns an empty store on the disk. */
    KeyValueStore<Bytes, byte[]> onDisk(String name) {
        try {
            if (folder == null) {
                folder = Files.createTempDirectory(parent, "outgrown");
            }
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
        KeyValueStore<Bytes, byte[]> store = Stores.persistentKeyValueStore(name).get();
        Versions.call(Versions.get(store, "metricsRecorder"), "init", metrics, task);
        Versions.typeIfAny("org.apache.kafka.streams.query.Position").ifPresent(type -> setPosition(store, type)); // from 3.2 on
        Map<String, Object> settings = new HashMap<>(config.originals()); // as a processor gets them
        settings.putAll(config.values());
        Versions.call(store, "openDB", settings, folder.resolve(Integer.toString(disks.size())).toFile());
        disks.add(store);
        return store;
    }

    /** Gives a store what it gets else from a task, and expects to be there. */
    private static void setPosition(Object store, Class<?> type) {
        try {
            Versions.field(store.getClass(), "position").set(store, type.getMethod("emptyPosition").invoke(null));
        } catch (ReflectiveOperationException problem) {
            throw Versions.unwrapped(problem);
        }
    }

    void close() {
        disks.forEach(KeyValueStore::close);
        disks.clear();
        holders.clear();
        if (folder != null) {
            Application.delete(folder.toFile());
        }
    }

    /** What takes memory, until it goes to the disk. */
    interface Holder {
        String name();

        long bytes();

        /** Moves all to the disk; bytes() is 0 then. */
        void toDisk();
    }
}
