package kops.runner;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.InMemoryKeyValueStore;

/**
 * A store in memory that a program cannot tell from one in RocksDB, but for approximateNumEntries(), which is an estimate there.
 *
 * <p>It sorts its keys when they are first asked for in an order. It keeps bytes of its own, so that arrays may be used again after they
 * were put or got; and an iterator over it does not see what is put or deleted while it is open, which the library's iterators in memory do.
 * What is too much for the memory goes to RocksDB, and it with it.
 */
class MemoryStore extends InMemoryKeyValueStore implements Memory.Holder {
    private static final byte[] NOTHING = {};
    private static final int SORTED_ENTRY = 160; // of objects around an entry, and of its copy for an iterator
    private static final int STEP = 1 << 16;

    private final Memory memory;
    /** What it holds, until somebody asks for more than single keys: then the store above it, which is sorted, holds all. */
    private Table unsorted = new Table(0);
    private long sorted;
    private long seen;
    /** What holds all once it is too much for the memory; null before. */
    private KeyValueStore<Bytes, byte[]> disk;

    MemoryStore(String name, Memory memory) {
        super(name);
        this.memory = memory;
        memory.add(this);
    }

    @Override
    public long bytes() {
        return disk != null ? 0 : unsorted != null ? unsorted.bytes() : sorted;
    }

    @Override
    public void toDisk() {
        KeyValueStore<Bytes, byte[]> target = memory.onDisk(name());
        if (unsorted != null) {
            unsorted.forEach(place -> target.put(Bytes.wrap(unsorted.key(place)), unsorted.value(place)));
            unsorted = null;
        } else {
            try (KeyValueIterator<Bytes, byte[]> all = super.all()) {
                all.forEachRemaining(entry -> target.put(entry.key, entry.value));
            }
            super.close();
        }
        disk = target;
    }

    @Override
    public boolean isOpen() {
        return disk == null ? super.isOpen() : disk.isOpen();
    }

    @Override
    public void close() {
        if (disk == null) {
            super.close();
        } else {
            disk.close();
        }
    }

    private void putSorted(Bytes key, byte[] value) {
        byte[] before = super.get(key);
        sorted += before == null ? 0 : -sizeOf(key, before);
        sorted += value == null ? 0 : sizeOf(key, value);
        super.put(key, value);
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
            return copy(super.get(key));
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
        return unsorted == null ? super.approximateNumEntries() : unsorted.size();
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
        return disk != null ? disk.range(from, to) : new Snapshot(super.range(from, to));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        sort();
        return disk != null ? disk.reverseRange(from, to) : new Snapshot(super.reverseRange(from, to));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        sort();
        return disk != null ? disk.all() : new Snapshot(super.all());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        sort();
        return disk != null ? disk.reverseAll() : new Snapshot(super.reverseAll());
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS prefixKeySerializer) {
        sort();
        return disk != null ? disk.prefixScan(prefix, prefixKeySerializer) : new Snapshot(super.prefixScan(prefix, prefixKeySerializer));
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

        Snapshot(KeyValueIterator<Bytes, byte[]> now) {
            try (KeyValueIterator<Bytes, byte[]> open = now) {
                while (open.hasNext()) {
                    KeyValue<Bytes, byte[]> entry = open.next();
                    entries.add(new KeyValue<>(entry.key, copy(entry.value)));
                }
            }
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
