package kops.runner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.InMemoryKeyValueStore;

/**
 * A store in memory that a program cannot tell from one in RocksDB, but for approximateNumEntries(), which is an estimate there.
 *
 * <p>It sorts its keys when they are first asked for in an order. It keeps bytes of its own, so that arrays may be used again after they
 * were put or got; and an iterator over it does not see what is put or deleted while it is open, which the library's iterators in memory do.
 * What is too much for the memory goes to RocksDB, and it with it.
 *
 * <p>From the library's store it has what only some versions ask for, none of what is held: which methods call each other there differs.
 */
class MemoryStore extends InMemoryKeyValueStore implements Memory.Holder {
    private static final byte[] NOTHING = {};
    private static final int SORTED_ENTRY = 160; // of objects around an entry, and of its copy for an iterator
    private static final int STEP = 1 << 16;

    private final Memory memory;
    private final NavigableMap<Bytes, byte[]> sorted = new TreeMap<>();
    /** What it holds, until somebody asks for more than single keys: then the sorted map holds all. */
    private Table unsorted = new Table(0);
    private long sortedBytes;
    private long seen;
    private boolean open;
    /** What holds all once it is too much for the memory; null before. */
    private KeyValueStore<Bytes, byte[]> disk;

    MemoryStore(String name, Memory memory) {
        super(name);
        this.memory = memory;
        memory.add(this);
    }

    /** Up to 3.9, for which this class is compiled. */
    @Override
    @Deprecated
    public void init(ProcessorContext context, StateStore root) {
        context.register(root, restoring());
        open = true;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        context.register(root, restoring());
        open = true;
    }

    private StateRestoreCallback restoring() {
        return (key, value) -> put(Bytes.wrap(key), value);
    }

    @Override
    public long bytes() {
        return disk != null ? 0 : unsorted != null ? unsorted.bytes() : sortedBytes;
    }

    @Override
    public void toDisk() {
        KeyValueStore<Bytes, byte[]> target = memory.onDisk(name());
        if (unsorted != null) {
            unsorted.forEach(place -> target.put(Bytes.wrap(unsorted.key(place)), unsorted.value(place)));
            unsorted = null;
        } else {
            sorted.forEach(target::put);
            sorted.clear();
        }
        disk = target;
    }

    @Override
    public boolean isOpen() {
        return disk == null ? open : disk.isOpen();
    }

    @Override
    public void close() {
        open = false;
        sorted.clear();
        if (disk != null) {
            disk.close();
        }
    }

    private void putSorted(Bytes key, byte[] value) {
        byte[] before = value == null ? sorted.remove(key) : sorted.put(key, value);
        sortedBytes += before == null ? 0 : -sizeOf(key, before);
        sortedBytes += value == null ? 0 : sizeOf(key, value);
    }

    private static long sizeOf(Bytes key, byte[] value) {
        return SORTED_ENTRY + 2L * (key.get().length + value.length);
    }

    private void lookAtMemory() {
        long now = bytes();
        if (unsorted != null ? now != seen : now > seen + STEP) {
            seen = now;
            memory.grown();
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        if (disk != null) {
            disk.put(key, value);
            return;
        }
        if (unsorted == null) {
            putSorted(copy(key), copy(value));
        } else if (value == null) {
            unsorted.remove(key.get());
        } else {
            unsorted.put(key.get(), value, NOTHING);
        }
        lookAtMemory();
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        for (KeyValue<Bytes, byte[]> entry : entries) {
            put(entry.key, entry.value);
        }
    }

    @Override
    public byte[] get(Bytes key) {
        if (disk != null) {
            return disk.get(key);
        }
        if (unsorted == null) {
            return copy(sorted.get(key));
        }
        long place = unsorted.find(key.get());
        return place == Table.NONE ? null : unsorted.value(place);
    }

    @Override
    public byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public long approximateNumEntries() {
        if (disk != null) {
            return disk.approximateNumEntries();
        }
        return unsorted == null ? sorted.size() : unsorted.size();
    }

    /** Makes ready for iterators. */
    private void sort() {
        if (unsorted != null) {
            Table all = unsorted;
            unsorted = null;
            all.forEach(place -> putSorted(Bytes.wrap(all.key(place)), all.value(place)));
            seen = 0;
        }
        if (disk == null) {
            lookAtMemory();
        }
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        sort();
        return disk != null ? disk.range(from, to) : new Snapshot(between(from, to));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        sort();
        return disk != null ? disk.reverseRange(from, to) : new Snapshot(between(from, to).descendingMap());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        sort();
        return disk != null ? disk.all() : new Snapshot(sorted);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        sort();
        return disk != null ? disk.reverseAll() : new Snapshot(sorted.descendingMap());
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS prefixKeySerializer) {
        sort();
        if (disk != null) {
            return disk.prefixScan(prefix, prefixKeySerializer);
        }
        byte[] start = prefixKeySerializer.serialize(null, prefix);
        NavigableMap<Bytes, byte[]> found = sorted.tailMap(Bytes.wrap(start), true);
        Bytes after = null;
        for (Bytes key : found.keySet()) {
            if (!startsWith(key.get(), start)) {
                after = key;
                break;
            }
        }
        return new Snapshot(after == null ? found : found.headMap(after, false));
    }

    private static boolean startsWith(byte[] key, byte[] start) {
        return key.length >= start.length && Arrays.equals(key, 0, start.length, start, 0, start.length);
    }

    /** @param from the first; null for all up to the last; both are inclusive */
    private NavigableMap<Bytes, byte[]> between(Bytes from, Bytes to) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            return new TreeMap<>();
        }
        NavigableMap<Bytes, byte[]> found = from == null ? sorted : sorted.tailMap(from, true);
        return to == null ? found : found.headMap(to, true);
    }

    private static byte[] copy(byte[] bytes) {
        return bytes == null ? null : bytes.clone();
    }

    private static Bytes copy(Bytes key) {
        return key == null ? null : Bytes.wrap(key.get().clone());
    }

    private static final class Snapshot implements KeyValueIterator<Bytes, byte[]> {
        private final List<KeyValue<Bytes, byte[]>> entries = new ArrayList<>();
        private final Iterator<KeyValue<Bytes, byte[]>> left;
        private int at;

        Snapshot(Map<Bytes, byte[]> now) {
            now.forEach((key, value) -> entries.add(new KeyValue<>(key, copy(value))));
            left = entries.iterator();
        }

        @Override
        public boolean hasNext() {
            return left.hasNext();
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            at++;
            return left.next();
        }

        @Override
        public Bytes peekNextKey() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return entries.get(at).key;
        }

        @Override
        public void close() {
            // nothing is held
        }
    }
}
