package kops.runner;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/** The last record of each key that went to a changelog, with bytes of its own: a serializer may use its arrays again. */
final class Lasts implements Memory.Holder {
    private static final int WRITTEN = 0;
    private static final int PARTITION = 1;
    private static final int OFFSET = 2;
    private static final int TIMESTAMP = 3;
    private static final int HEADERS = 4;
    private static final int NUMBERS = 5;
    private static final byte[] NOTHING = {};

    private final String topic;
    private final Memory memory;
    private Table table = new Table(NUMBERS);
    private long seen;
    /** All of them, once they are too many for the memory; null before. */
    private KeyValueStore<Bytes, byte[]> disk;

    Lasts(String topic, Memory memory) {
        this.topic = topic;
        this.memory = memory;
        memory.add(this);
    }

    /** @param written counts records of all topics */
    void put(long written, int partition, long offset, long timestamp, byte[] key, byte[] value, byte[] headers) {
        if (disk != null) {
            long[] numbers = {written, partition, offset, timestamp, headers.length};
            disk.put(place(key), new Row(numbers, key, value, headers).coded());
            return;
        }
        long place = table.put(key, value, headers);
        table.number(place, WRITTEN, written);
        table.number(place, PARTITION, partition);
        table.number(place, OFFSET, offset);
        table.number(place, TIMESTAMP, timestamp);
        table.number(place, HEADERS, headers.length);
        if (table.bytes() != seen) {
            seen = table.bytes();
            memory.grown();
        }
    }

    /** Where a key is on the disk: null is another than an empty one. */
    private static Bytes place(byte[] key) {
        return Bytes.wrap(key == null ? NOTHING : ByteBuffer.allocate(key.length + 1).put((byte) 1).put(key).array());
    }

    private Row row(long place) {
        long[] numbers = new long[NUMBERS];
        for (int which = 0; which < NUMBERS; which++) {
            numbers[which] = table.number(place, which);
        }
        return new Row(numbers, table.key(place), table.value(place), table.more(place, (int) numbers[HEADERS]));
    }

    @Override
    public String name() {
        return topic;
    }

    @Override
    public long bytes() {
        return disk == null ? table.bytes() : 0;
    }

    @Override
    public void toDisk() {
        disk = memory.onDisk("kops-" + topic);
        table.forEach(place -> {
            Row row = row(place);
            disk.put(place(row.key), row.coded());
        });
        table = null;
    }

    /** Adds all records of some topics, in the order of writing. */
    static void addInOrder(List<Lasts> all, Memory memory, Batch.Writer rows, Runnable afterEach) {
        if (all.stream().anyMatch(each -> each.disk != null)) {
            addFromDisk(all, memory, rows, afterEach);
            return;
        }
        int count = all.stream().mapToInt(each -> each.table.size()).reduce(0, Math::addExact);
        int bits = 64 - Long.numberOfLeadingZeros(count);
        long[] order = new long[count]; // when it was written, and which of them it is
        long[] places = new long[count];
        Lasts[] from = new Lasts[count];
        int[] at = {0};
        for (Lasts each : all) {
            each.table.forEach(place -> {
                order[at[0]] = Math.multiplyExact(each.table.number(place, WRITTEN), 1L << bits) | at[0];
                places[at[0]] = place;
                from[at[0]++] = each;
            });
        }
        Arrays.sort(order);
        for (long one : order) {
            int which = (int) (one & (1L << bits) - 1);
            from[which].row(places[which]).add(rows, from[which].topic);
            afterEach.run();
        }
    }

    /** Sorts them on the disk: by when they were written. */
    private static void addFromDisk(List<Lasts> all, Memory memory, Batch.Writer rows, Runnable afterEach) {
        KeyValueStore<Bytes, byte[]> ordered = memory.onDisk("kops-in-order");
        for (int number = 0; number < all.size(); number++) {
            Lasts each = all.get(number);
            if (each.disk == null) {
                each.toDisk();
            }
            try (KeyValueIterator<Bytes, byte[]> left = each.disk.all()) {
                while (left.hasNext()) {
                    byte[] coded = left.next().value;
                    byte[] key = ByteBuffer.allocate(12).putLong(ByteBuffer.wrap(coded).getLong(8 * WRITTEN)).putInt(number).array();
                    ordered.put(Bytes.wrap(key), coded);
                }
            }
            each.disk.close();
        }
        try (KeyValueIterator<Bytes, byte[]> left = ordered.all()) {
            while (left.hasNext()) {
                KeyValue<Bytes, byte[]> one = left.next();
                Row.of(one.value).add(rows, all.get(ByteBuffer.wrap(one.key.get()).getInt(8)).topic);
                afterEach.run();
            }
        }
        ordered.close();
    }

    /** One record. */
    private static final class Row {
        final byte[] key;
        private final long[] numbers;
        private final byte[] value;
        private final byte[] headers;

        Row(long[] numbers, byte[] key, byte[] value, byte[] headers) {
            this.numbers = numbers;
            this.key = key;
            this.value = value;
            this.headers = headers;
        }

        void add(Batch.Writer rows, String topic) {
            rows.add(topic, (int) numbers[PARTITION], numbers[OFFSET], numbers[TIMESTAMP], key, value, headers);
        }

        /** The numbers, the lengths of key and value (-1: null), and the three arrays. */
        byte[] coded() {
            byte[][] parts = {key == null ? NOTHING : key, value == null ? NOTHING : value, headers};
            int length = 8 * NUMBERS + 8;
            for (byte[] part : parts) {
                length = Math.addExact(length, part.length);
            }
            ByteBuffer coded = ByteBuffer.allocate(length);
            for (long number : numbers) {
                coded.putLong(number);
            }
            coded.putInt(key == null ? -1 : key.length).putInt(value == null ? -1 : value.length);
            for (byte[] part : parts) {
                coded.put(part);
            }
            return coded.array();
        }

        static Row of(byte[] coded) {
            ByteBuffer from = ByteBuffer.wrap(coded);
            long[] numbers = new long[NUMBERS];
            for (int which = 0; which < NUMBERS; which++) {
                numbers[which] = from.getLong();
            }
            int keyLength = from.getInt();
            int valueLength = from.getInt();
            byte[] key = bytes(from, keyLength);
            byte[] value = bytes(from, valueLength);
            return new Row(numbers, key, value, bytes(from, from.remaining()));
        }

        private static byte[] bytes(ByteBuffer from, int length) {
            if (length < 0) {
                return null;
            }
            byte[] bytes = new byte[length];
            from.get(bytes);
            return bytes;
        }
    }
}
