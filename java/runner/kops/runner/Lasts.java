package kops.runner;

import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The last record of each key that went to a changelog, with bytes of its own: a serializer may use its arrays again. */
final class Lasts {
    private static final int WRITTEN = 0;
    private static final int PARTITION = 1;
    private static final int OFFSET = 2;
    private static final int TIMESTAMP = 3;
    private static final int HEADERS = 4;

    private final String topic;
    private final Table table = new Table(5);

    Lasts(String topic) {
        this.topic = topic;
    }

    /** @param written counts records of all topics */
    void put(long written, int partition, long offset, long timestamp, ProducerRecord<byte[], byte[]> record) {
        byte[] headers = Batch.encoded(record.headers());
        long place = table.put(record.key(), record.value(), headers);
        table.number(place, WRITTEN, written);
        table.number(place, PARTITION, partition);
        table.number(place, OFFSET, offset);
        table.number(place, TIMESTAMP, timestamp);
        table.number(place, HEADERS, headers.length);
    }

    /** Adds a row. */
    void add(Batch.Writer rows, long place) {
        rows.add(
                topic,
                (int) table.number(place, PARTITION),
                table.number(place, OFFSET),
                table.number(place, TIMESTAMP),
                table.key(place),
                table.value(place),
                table.more(place, (int) table.number(place, HEADERS)));
    }

    /** Gives all records of some topics, in the order of writing. */
    static void inOrder(List<Lasts> all, Action action) {
        int rows = all.stream().mapToInt(each -> each.table.size()).reduce(0, Math::addExact);
        int bits = 64 - Long.numberOfLeadingZeros(rows);
        long[] order = new long[rows]; // when it was written, and which of them it is
        long[] places = new long[rows];
        Lasts[] from = new Lasts[rows];
        int[] count = {0};
        for (Lasts each : all) {
            each.table.forEach(place -> {
                order[count[0]] = Math.multiplyExact(each.table.number(place, WRITTEN), 1L << bits) | count[0];
                places[count[0]] = place;
                from[count[0]++] = each;
            });
        }
        Arrays.sort(order);
        for (long one : order) {
            int which = (int) (one & (1L << bits) - 1);
            action.with(from[which], places[which]);
        }
    }

    /** What is done with each of them. */
    interface Action {
        void with(Lasts lasts, long place);
    }
}
