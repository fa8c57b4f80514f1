package kops.agent;

/** What the rewritten constructors of KafkaStreams call first. */
public final class Hook {
    static volatile Session session;

    private Hook() {}

    /** Called with the first two arguments of a constructor that is given a Topology; never returns. */
    public static synchronized void constructed(final Object topology, final Object config) {
        session.constructed(topology, config);
    }

    /** Called by a constructor that is given no Topology, which only a changed library calls from outside. */
    public static synchronized void unknown(final String descriptor) {
        session.fail("this library constructs KafkaStreams in a way that kops does not know: KafkaStreams" + descriptor, null);
    }
}
