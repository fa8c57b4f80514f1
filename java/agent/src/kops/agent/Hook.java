package kops.agent;

/** What rewritten classes call: the constructors of KafkaStreams, and all that read the time of day where it is shifted. */
public final class Hook {
    static volatile Session session;

    /** By how many milliseconds the time of day is another for the program. */
    static volatile long shift;

    private static final long NANOS_OF_MILLI = 1_000_000;

    private Hook() {}

    /** Called before the next one, where a constructor is also given the program's KafkaClientSupplier. */
    public static void supplied(final Object supplier) {
        session.supplied(supplier);
    }

    /** Called with the first two arguments of a constructor that is given a Topology; never returns. */
    public static void constructed(final Object topology, final Object config) {
        Afresh.take(topology, config);
        first(topology, config);
    }

    private static synchronized void first(final Object topology, final Object config) {
        session.constructed(topology, config);
    }

    /** Called by a constructor that is given no Topology, which only a changed library calls from outside. */
    public static synchronized void unknown(final String descriptor) {
        session.fail("this library constructs KafkaStreams in a way that kops does not know: KafkaStreams" + descriptor, null);
    }

    /** Called in place of a reference to System.currentTimeMillis. */
    public static long millis() {
        return shiftedMillis(System.currentTimeMillis());
    }

    /** Called with what System.currentTimeMillis() has returned. */
    public static long shiftedMillis(final long now) {
        return now + shift;
    }

    /** Called with nanoseconds since some time, or with -1: they are too many to count. */
    public static long shiftedNanos(final long since) {
        return since == -1 ? since : since + shift * NANOS_OF_MILLI;
    }

    /** Called by the runner after a task: charset, locale and zone of the JVM, and what was read until then, as JSON. */
    public static String surroundings() {
        return Json.text(Surroundings.now());
    }
}
