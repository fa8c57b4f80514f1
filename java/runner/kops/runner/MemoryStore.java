package kops.runner;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.InMemoryKeyValueStore;

/**
 * A store in memory that a program cannot tell from one in RocksDB, but for approximateNumEntries(), which is an estimate there.
 *
 * <p>It sorts its keys when they are first asked for in an order. It keeps bytes of its own, so that arrays may be used again after they
 * were put or got; and an iterator over it does not see what is put or deleted while it is open, which the library's iterators in memory do.
 */
class MemoryStore extends InMemoryKeyValueStore {
    private static final byte[] NOTHING = {};
    /** What it holds, until somebody asks for more than single keys: then the store above it, which is sorted, holds all. */
    private Table unsorted = new Table(0);

    MemoryStore(String name) {
        super(name);
    }

    @Override
    public void put(Bytes key, byte[] value) {
        if (unsorted == null) {
            super.put(copy(key), copy(value));
        } else if (value == null) {
            unsorted.remove(key.get());
        } else {
            unsorted.put(key.get(), value, NOTHING);
        }
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
        if (unsorted == null) {
            return copy(super.get(key));
        }
        long place = unsorted.find(key.get());
        return place == Table.NONE ? null : unsorted.value(place);
    }

    @Override
    public byte[] delete(Bytes key) {
        if (unsorted == null) {
            return copy(super.delete(key));
        }
        byte[] before = get(key);
        unsorted.remove(key.get());
        return before;
    }

    @Override
    public long approximateNumEntries() {
        return unsorted == null ? super.approximateNumEntries() : unsorted.size();
    }

    private void sort() {
        if (unsorted != null) {
            Table all = unsorted;
            unsorted = null;
            all.forEach(place -> super.put(Bytes.wrap(all.key(place)), all.value(place)));
        }
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        sort();
        return new Snapshot(super.range(from, to));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        sort();
        return new Snapshot(super.reverseRange(from, to));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        sort();
        return new Snapshot(super.all());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        sort();
        return new Snapshot(super.reverseAll());
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS prefixKeySerializer) {
        sort();
        return new Snapshot(super.prefixScan(prefix, prefixKeySerializer));
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
