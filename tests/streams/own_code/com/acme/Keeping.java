package com.acme;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.elsewhere.Patterns;

/** Functions that keep something between records, and others that only look so. */
public final class Keeping {
    private static final Map<String, Long> TOTALS = new HashMap<>();

    private Keeping() {}

    public static Aggregator<String, String, Long> aggregator(String kind) {
        switch (kind) {
            case "number":
                return new Numbered();
            case "text":
                return new Latest();
            case "first":
                return new First();
            case "list":
                return new Listed();
            case "nested":
                return new Nested();
            case "static":
                return (key, value, sum) -> TOTALS.merge(key, Long.parseLong(value), Long::sum);
            case "nothing":
                return new Nothing();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /** Lets every other record through. */
    public static Predicate<String, String> everyOther() {
        AtomicLong calls = new AtomicLong();
        return (key, value) -> calls.incrementAndGet() % 2 == 0;
    }

    /** A function of the same class that keeps nothing. */
    public static Initializer<Long> initializer(long zero) {
        return () -> zero;
    }

    private static final class Numbered implements Aggregator<String, String, Long> {
        private int count;

        @Override
        public Long apply(String key, String value, Long sum) {
            return sum + Long.parseLong(value) + count++ % 2;
        }
    }

    private static final class Latest implements Aggregator<String, String, Long> {
        private String last;

        @Override
        public Long apply(String key, String value, Long sum) {
            long more = value.equals(last) ? 0 : Long.parseLong(value);
            last = value;
            return sum + more;
        }
    }

    private static final class First implements Aggregator<String, String, Long> {
        private String first;

        @Override
        public Long apply(String key, String value, Long sum) {
            first = first == null ? value : first;
            return sum + Long.parseLong(first);
        }
    }

    private static final class Listed implements Aggregator<String, String, Long> {
        private final Map<String, List<String>> values = new HashMap<>(Map.of("seen", new ArrayList<>()));

        @Override
        public Long apply(String key, String value, Long sum) {
            values.get("seen").add(value);
            return sum + values.get("seen").size();
        }
    }

    private static final class Nested implements Aggregator<String, String, Long> {
        private final Totals totals = new Totals();

        @Override
        public Long apply(String key, String value, Long sum) {
            totals.perHundred[(int) sum.longValue() % 100]++;
            return sum + Long.parseLong(value);
        }
    }

    private static final class Totals {
        private final long[] perHundred = new long[100];
    }

    /** Has fields, of which one is made when it is first needed, and another is a cache. */
    private static final class Nothing implements Aggregator<String, String, Long> {
        private static final long FACTOR = 3;
        private final Map<String, Long> factors = Map.of("k1", 2L);
        private final Patterns patterns = new Patterns();
        private Pattern digits;

        @Override
        public Long apply(String key, String value, Long sum) {
            digits = digits == null ? Pattern.compile("\\d+") : digits;
            boolean known = patterns.matches("[0-9]" + "+".repeat(value.length() % 2), value);
            return digits.matcher(value).matches() || known ? sum + Long.parseLong(value) * factors.getOrDefault(key, FACTOR) : sum;
        }
    }

    /** Collects in a field what it puts into its store later. */
    public static final class Collecting implements Processor<String, String, String, String> {
        private final List<String> collected = new ArrayList<>();
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            collected.add(record.value());
            if (collected.size() == 3) {
                store.put(record.key(), String.join(",", collected));
                collected.clear();
            }
        }
    }
}
