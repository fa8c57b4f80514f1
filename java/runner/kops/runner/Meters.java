package kops.runner;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;

/** What the library measures of a task. */
final class Meters {
    static final String DROPPED = "dropped-records";
    private static final String OF_THE_LIBRARY = "internal.";

    private Meters() {}

    /**
     * Lets the library measure nothing of its own but the records that it drops: how long a record took, by a clock that stands still, says
     * nothing, and measuring it costs more than many a processor. What a program measures goes on.
     *
     * @param metrics a StreamsMetricsImpl
     */
    static void silence(Object metrics) {
        Metrics all = (Metrics) Versions.get(metrics, "metrics");
        Field level = Versions.field(Sensor.class, "recordingLevel");
        ((Map<?, ?>) Versions.get(all, "sensors")).forEach((name, sensor) -> {
            if (name.toString().startsWith(OF_THE_LIBRARY) && !name.toString().contains(DROPPED)) {
                try {
                    level.set(sensor, Sensor.RecordingLevel.TRACE); // which no registry here records
                } catch (IllegalAccessException problem) {
                    throw new IllegalStateException(problem);
                }
            }
        });
    }
}
