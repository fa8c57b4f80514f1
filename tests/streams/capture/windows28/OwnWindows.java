import java.time.Duration;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Windows as they are written before 3.0. */
final class OwnWindows {
    private OwnWindows() {}

    static TimeWindows tumbling(final Duration size, final Duration grace) {
        return TimeWindows.of(size).grace(grace);
    }

    static SessionWindows sessions(final Duration gap, final Duration grace) {
        return SessionWindows.with(gap).grace(grace);
    }

    static JoinWindows near(final Duration difference, final Duration grace) {
        return JoinWindows.of(difference).grace(grace);
    }
}
