package kops.runner;

/** The library lacks what the runner calls: it is a fork, or newer. */
final class UnlikeLibrary extends IllegalStateException {
    private static final long serialVersionUID = 1;

    UnlikeLibrary(String what) {
        super("this Kafka Streams has no " + what);
    }
}
