package kops.runner;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Frames, as src/kops/formats/runner_frames.py describes them: the length of the body (4 bytes), the kind (1 byte), the body.
 * All numbers are little-endian.
 */
final class Frames {
    static final int CONFIGURE = 'C';
    static final int GLOBAL = 'G';
    static final int TASK = 'T';
    static final int RESTORE = 'B';
    static final int RECORDS = 'R';
    static final int END = 'E';
    static final int RESTART = 'N';
    static final int FINISH = 'F';
    static final int QUIT = 'Q';
    static final int HELLO = 'H';
    static final int OUTPUT = 'O';
    static final int DONE = 'K';
    static final int FAILED = 'X';

    private static final int MOST = 1 << 30;

    private final DataInputStream in;
    private final OutputStream out;

    Frames(InputStream in, OutputStream out) {
        this.in = new DataInputStream(in);
        this.out = out;
    }

    /** One frame; null at the end of the stream. */
    Frame read() throws IOException {
        int first = in.read();
        if (first < 0) {
            return null;
        }
        byte[] head = new byte[5];
        head[0] = (byte) first;
        in.readFully(head, 1, 4);
        int length = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt();
        if (length < 0 || length > MOST) {
            throw new IOException("a frame of " + length + " bytes");
        }
        byte[] body = new byte[length];
        in.readFully(body);
        return new Frame(head[4], ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN));
    }

    void write(int kind, Map<String, String> map) throws IOException {
        int length = 4;
        byte[][] texts = new byte[map.size() * 2][];
        int at = 0;
        for (Map.Entry<String, String> entry : map.entrySet()) {
            texts[at++] = entry.getKey().getBytes(StandardCharsets.UTF_8);
            texts[at++] = entry.getValue().getBytes(StandardCharsets.UTF_8);
        }
        for (byte[] text : texts) {
            length += 4 + text.length;
        }
        ByteBuffer body = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN).putInt(map.size());
        for (byte[] text : texts) {
            body.putInt(text.length).put(text);
        }
        head(kind, length);
        out.write(body.array());
    }

    void head(int kind, int length) throws IOException {
        out.write(ByteBuffer.allocate(5).order(ByteOrder.LITTLE_ENDIAN).putInt(length).put((byte) kind).array());
    }

    OutputStream body() {
        return out;
    }

    void flush() throws IOException {
        out.flush();
    }

    static final class Frame {
        final int kind;
        final ByteBuffer body;

        Frame(int kind, ByteBuffer body) {
            this.kind = kind;
            this.body = body;
        }

        Map<String, String> map() throws EOFException {
            Map<String, String> map = new LinkedHashMap<>();
            for (int left = body.getInt(); left > 0; left--) {
                map.put(text(body), text(body));
            }
            return map;
        }
    }

    static String text(ByteBuffer from) throws EOFException {
        byte[] text = new byte[from.getInt()];
        from.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }
}
