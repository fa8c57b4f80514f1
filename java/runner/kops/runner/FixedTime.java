package kops.runner;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A wall clock that stands still: what a program computes must not depend on when it is run again. */
final class FixedTime implements Time {
    private final long now;

    FixedTime(long now) {
        this.now = now;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long hiResClockMs() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000L;
    }

    @Override
    public void sleep(long ms) {
        // time does not pass
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        // nothing that a task waits for
    }
}
