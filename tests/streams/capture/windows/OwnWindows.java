import java.time.Duration;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Windows as they are written since 3.0. */
final class OwnWindows {
    private OwnWindows() {}

    static TimeWindows tumbling(final Duration size, final Duration grace) {
        return TimeWindows.ofSizeAndGrace(size, grace);
    }

    static SessionWindows sessions(final Duration gap, final Duration grace) {
        return SessionWindows.ofInactivityGapAndGrace(gap, grace);
    }

    static JoinWindows near(final Duration difference, final Duration grace) {
        return JoinWindows.ofTimeDifferenceAndGrace(difference, grace);
    }
}
