import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.streams.kstream.Windows;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** Windows of a program's own that do not start at multiples of their advance, such as days that begin at 18:00. */
final class AlignedWindows extends Windows<TimeWindow> {
    private final long size;
    private final long advance;
    private final long grace;
    private final long alignment;

    AlignedWindows(JsonNode window) {
        size = window.required("size").longValue();
        advance = window.required("advance").longValue();
        grace = window.required("grace").longValue();
        alignment = window.required("alignment").longValue();
    }

    @Override
    public Map<Long, TimeWindow> windowsFor(long timestamp) {
        Map<Long, TimeWindow> windows = new LinkedHashMap<>();
        for (long start = alignment; start <= timestamp; start += advance) {
            if (start + size > timestamp) {
                windows.put(start, new TimeWindow(start, start + size));
            }
        }
        return windows;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public long gracePeriodMs() {
        return grace;
    }
}
