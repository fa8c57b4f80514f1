package kops.runner;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** Records as columns: read from a frame row by row, or collected for one. */
final class Batch {
    private static final byte[] NOTHING = {};

    private Batch() {}

    /** The rows of a frame. */
    static final class Reader {
        final int rows;
        private final byte[] data;
        private final ByteBuffer body;
        private final String[] topics;
        private final int topicColumn;
        private int key;
        private int value;
        private int header;
        private int row;

        Reader(ByteBuffer body) throws IOException {
            this.body = body;
            this.data = body.array();
            rows = body.getInt();
            topics = new String[body.getInt()];
            for (int at = 0; at < topics.length; at++) {
                topics[at] = Frames.text(body);
            }
            topicColumn = body.position();
            key = topicColumn + 36 * rows;
            long keys = 0;
            long values = 0;
            for (int at = 0; at < rows; at++) {
                keys += Math.max(0, length(24, at));
                values += Math.max(0, length(28, at));
            }
            value = Math.toIntExact(key + keys);
            header = Math.toIntExact(value + values);
        }

        private int length(int before, int at) {
            return body.getInt(topicColumn + before * rows + 4 * at);
        }

        boolean hasNext() {
            return row < rows;
        }

        ConsumerRecord<byte[], byte[]> next() throws IOException {
            int keyLength = length(24, row);
            int valueLength = length(28, row);
            int headerLength = length(32, row);
            byte[] keyBytes = bytes(key, keyLength);
            byte[] valueBytes = bytes(value, valueLength);
            ConsumerRecord<byte[], byte[]> record = Versions.record(
                    topics[length(0, row)],
                    length(4, row),
                    body.getLong(topicColumn + 8 * rows + 8 * row),
                    body.getLong(topicColumn + 16 * rows + 8 * row),
                    keyBytes,
                    valueBytes,
                    headerLength > 0 ? headers(header, headerLength) : new RecordHeaders());
            key += Math.max(0, keyLength);
            value += Math.max(0, valueLength);
            header += Math.max(0, headerLength);
            row++;
            return record;
        }

        private byte[] bytes(int from, int length) {
            return length < 0 ? null : Arrays.copyOfRange(data, from, from + length);
        }

        private Headers headers(int from, int length) throws IOException {
            RecordHeaders headers = new RecordHeaders();
            ByteBuffer at = body.duplicate().order(body.order());
            at.position(from);
            while (at.position() < from + length) {
                String name = Frames.text(at);
                int size = at.getInt();
                byte[] content = size < 0 ? null : new byte[size];
                if (content != null) {
                    at.get(content);
                }
                headers.add(name, content);
            }
            return headers;
        }
    }

    /** All rows of a frame. */
    static List<ConsumerRecord<byte[], byte[]>> records(ByteBuffer body) {
        try {
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (Reader reader = new Reader(body); reader.hasNext(); ) {
                records.add(reader.next());
            }
            return records;
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    /** The headers of a record as a row has them. */
    static byte[] encoded(Iterable<Header> headers) {
        Iterator<Header> left = headers.iterator();
        if (!left.hasNext()) {
            return NOTHING;
        }
        Column column = new Column();
        while (left.hasNext()) {
            Header header = left.next();
            byte[] text = header.key().getBytes(StandardCharsets.UTF_8);
            column.number(text.length);
            column.bytes(text);
            byte[] content = header.value();
            column.number(content == null ? -1 : content.length);
            column.bytes(content);
        }
        return Arrays.copyOf(column.data, column.size);
    }

    /** Rows for a frame. */
    static final class Writer {
        private static final int ENOUGH = 4 << 20;
        private final Map<String, Integer> topics = new LinkedHashMap<>();
        private final Column numbers = new Column();
        private final List<Column> columns = new ArrayList<>();
        private final Column topic = column();
        private final Column partition = column();
        private final Column offset = column();
        private final Column timestamp = column();
        private final Column keyLengths = column();
        private final Column valueLengths = column();
        private final Column headerLengths = column();
        private final Column keys = column();
        private final Column values = column();
        private final Column headers = column();
        private int rows;

        private Column column() {
            Column column = new Column();
            columns.add(column);
            return column;
        }

        void add(String name, int partitionOf, long offsetOf, long timestampOf, byte[] key, byte[] value, byte[] headersOf) {
            Integer known = topics.get(name);
            if (known == null) {
                known = topics.size();
                topics.put(name, known);
            }
            topic.number(known);
            partition.number(partitionOf);
            offset.number8(offsetOf);
            timestamp.number8(timestampOf);
            keyLengths.number(keys.bytes(key));
            valueLengths.number(values.bytes(value));
            headerLengths.number(headers.bytes(headersOf));
            rows++;
        }

        boolean full() {
            return keys.size + values.size + headers.size + 36 * rows > ENOUGH;
        }

        void write(Frames frames) throws IOException {
            if (rows > 0) {
                frames.head(Frames.OUTPUT, begin());
                writeTo(frames.body());
            }
        }

        /** The rows as the body of a frame; none are left here. */
        ByteBuffer body() {
            try {
                ByteArrayOutputStream body = new ByteArrayOutputStream(begin());
                writeTo(body);
                return ByteBuffer.wrap(body.toByteArray()).order(ByteOrder.LITTLE_ENDIAN);
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
        }

        /** Puts what comes before the columns in front of them, and returns how long all is. */
        private int begin() {
            numbers.number(rows);
            numbers.number(topics.size());
            for (String name : topics.keySet()) {
                byte[] text = name.getBytes(StandardCharsets.UTF_8);
                numbers.number(text.length);
                numbers.bytes(text);
            }
            int length = numbers.size;
            for (Column column : columns) {
                length += column.size;
            }
            return length;
        }

        private void writeTo(OutputStream out) throws IOException {
            numbers.write(out);
            for (Column column : columns) {
                column.write(out);
            }
            topics.clear();
            rows = 0;
        }

        void clear() {
            topics.clear();
            rows = 0;
            numbers.size = 0;
            columns.forEach(column -> column.size = 0);
        }
    }

    /** Bytes that grow. */
    private static final class Column {
        private static final int FIRST = 1 << 8;
        private byte[] data = new byte[FIRST];
        private int size;

        private void room(int more) {
            if (data.length - size < more) {
                data = Arrays.copyOf(data, Math.max(data.length * 2, Math.addExact(size, more)));
            }
        }

        void number(int number) {
            room(4);
            for (int shift = 0; shift < 32; shift += 8) {
                data[size++] = (byte) (number >>> shift);
            }
        }

        void number8(long number) {
            room(8);
            for (int shift = 0; shift < 64; shift += 8) {
                data[size++] = (byte) (number >>> shift);
            }
        }

        int bytes(byte[] bytes) {
            if (bytes == null) {
                return -1;
            }
            room(bytes.length);
            System.arraycopy(bytes, 0, data, size, bytes.length);
            size += bytes.length;
            return bytes.length;
        }

        void write(OutputStream out) throws IOException {
            out.write(data, 0, size);
            size = 0;
        }
    }
}
