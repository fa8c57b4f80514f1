package kops.runner;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaClientSupplier;

/**
 * The clients of a shadow: consumers whose input ends at given offsets, producers that send to the shadow's own topics only.
 *
 * <p>They are proxies of the interfaces, which differ from version to version of the library.
 */
final class ShadowClients {
    private static final int SESSION_MS = 10_000;

    private final KafkaClientSupplier own;
    private final String prefix;
    private final Map<String, Long> cuts;
    private final Map<String, Long> positions = new ConcurrentHashMap<>();
    private final Map<String, Long> after = new ConcurrentHashMap<>();
    private final Map<String, AtomicLong> suppressed = new ConcurrentHashMap<>();
    private final Set<String> withoutKey = ConcurrentHashMap.newKeySet();
    private final AtomicLong records = new AtomicLong();
    private final AtomicLong again = new AtomicLong();

    /**
     * @param own the supplier of the clients that do the work
     * @param prefix with which the names of the shadow's own topics begin
     * @param cuts by topic:partition, the first offset that does not count; partitions of other topics give nothing
     */
    ShadowClients(KafkaClientSupplier own, String prefix, Map<String, Long> cuts) {
        this.own = own;
        this.prefix = prefix;
        this.cuts = cuts;
    }

    KafkaClientSupplier supplier() {
        return proxy(KafkaClientSupplier.class, own, (method, arguments) -> {
            switch (method.getName()) {
                case "getProducer":
                    return producer(own.getProducer(settings(arguments[0])));
                case "getConsumer":
                    Map<String, Object> settings = settings(arguments[0]);
                    settings.remove("group.instance.id");
                    settings.put("internal.leave.group.on.close", true); // so that its group can go at once
                    settings.put("session.timeout.ms", SESSION_MS); // and soon, if it is killed
                    settings.put("heartbeat.interval.ms", SESSION_MS / 3);
                    return new Input(own.getConsumer(settings)).proxy();
                default:
                    return call(own, method, arguments);
            }
        });
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> settings(Object given) {
        return new HashMap<>((Map<String, Object>) given);
    }

    /** Tells how far it is: of each partition the position, and the offset after the last record that was given. */
    void addTo(Properties facts) {
        positions.forEach((place, position) -> facts.setProperty("place." + place, position + "," + after.getOrDefault(place, 0L)));
        suppressed.forEach((topic, count) -> facts.setProperty("suppressed." + topic, count.toString()));
        facts.setProperty("without_key", String.join(",", new TreeSet<>(withoutKey)));
        facts.setProperty("records", records.toString());
        facts.setProperty("again", again.toString());
    }

    private Producer<?, ?> producer(Producer<byte[], byte[]> real) {
        return proxy(Producer.class, real, (method, arguments) -> {
            if (!method.getName().equals("send")) {
                return call(real, method, arguments);
            }
            ProducerRecord<?, ?> record = (ProducerRecord<?, ?>) arguments[0];
            if (record.topic().startsWith(prefix)) {
                if (record.key() == null && record.partition() == null) {
                    withoutKey.add(record.topic());
                }
                return call(real, method, arguments);
            }
            long number = suppressed.computeIfAbsent(record.topic(), topic -> new AtomicLong()).getAndIncrement();
            RecordMetadata metadata = metadata(record, number);
            if (arguments.length > 1 && arguments[1] != null) {
                ((Callback) arguments[1]).onCompletion(metadata, null);
            }
            return CompletableFuture.completedFuture(metadata);
        });
    }

    private static RecordMetadata metadata(ProducerRecord<?, ?> record, long offset) throws ReflectiveOperationException {
        TopicPartition place = new TopicPartition(record.topic(), record.partition() == null ? 0 : record.partition());
        long timestamp = record.timestamp() == null ? -1 : record.timestamp();
        for (Constructor<?> each : RecordMetadata.class.getConstructors()) {
            if (each.getParameterCount() == 6) {
                return (RecordMetadata) each.newInstance(place, offset, 0, timestamp, -1, -1);
            }
        }
        return RecordMetadata.class
            .getConstructor(TopicPartition.class, long.class, long.class, long.class, Long.class, int.class, int.class)
            .newInstance(place, offset, 0L, timestamp, null, -1, -1);
    }

    /** A consumer of the input and of the shadow's own repartition topics. */
    private final class Input {
        private final Consumer<byte[], byte[]> real;

        Input(Consumer<byte[], byte[]> real) {
            this.real = real;
        }

        Consumer<byte[], byte[]> proxy() {
            return ShadowClients.proxy(Consumer.class, real, (method, arguments) -> {
                switch (method.getName()) {
                    case "poll":
                        return cut(records(call(real, method, arguments)));
                    case "resume":
                        return call(real, method, new Object[] {unfinished((Collection<?>) arguments[0])});
                    case "currentLag":
                        return lag((TopicPartition) arguments[0], (OptionalLong) call(real, method, arguments));
                    default:
                        return call(real, method, arguments);
                }
            });
        }

        @SuppressWarnings("unchecked")
        private ConsumerRecords<byte[], byte[]> records(Object found) {
            return (ConsumerRecords<byte[], byte[]>) found;
        }

        private ConsumerRecords<byte[], byte[]> cut(ConsumerRecords<byte[], byte[]> found) throws Exception {
            Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> kept = new LinkedHashMap<>();
            Map<TopicPartition, Long> ended = new HashMap<>();
            for (TopicPartition place : found.partitions()) {
                List<ConsumerRecord<byte[], byte[]>> given = found.records(place);
                long cut = cutOf(place);
                int count = given.size();
                while (count > 0 && given.get(count - 1).offset() >= cut) {
                    count--;
                }
                if (count < given.size()) {
                    ended.put(place, cut);
                    real.seek(place, cut);
                }
                if (count > 0) {
                    kept.put(place, new ArrayList<>(given.subList(0, count)));
                    long before = after.getOrDefault(name(place), 0L);
                    again.addAndGet(given.subList(0, count).stream().filter(record -> record.offset() < before).count());
                    after.merge(name(place), given.get(count - 1).offset() + 1, Math::max);
                    records.addAndGet(count);
                }
            }
            look();
            return ended.isEmpty() ? found : shortened(found, kept, ended);
        }

        /** Keeps where each partition is, and pauses those that are through, so that no more of them is fetched. */
        private void look() {
            Set<TopicPartition> paused = real.paused();
            for (TopicPartition place : real.assignment()) {
                Long position = position(place);
                if (position == null) {
                    continue;
                }
                positions.put(name(place), position);
                if (position >= cutOf(place) && !paused.contains(place)) {
                    real.pause(Set.of(place));
                }
            }
        }

        private Collection<TopicPartition> unfinished(Collection<?> places) {
            List<TopicPartition> found = new ArrayList<>();
            for (Object each : places) {
                TopicPartition place = (TopicPartition) each;
                Long position = position(place);
                if (position == null || position < cutOf(place)) {
                    found.add(place);
                }
            }
            return found;
        }

        /** What is left up to the cut: for what is behind it, a task must not wait. */
        private OptionalLong lag(TopicPartition place, OptionalLong known) {
            long cut = cutOf(place);
            Long position = cut == Long.MAX_VALUE ? null : position(place);
            if (position == null) {
                return known;
            }
            long left = Math.max(0, cut - position);
            return left == 0 ? OptionalLong.of(0) : known.isPresent() ? OptionalLong.of(Math.min(known.getAsLong(), left)) : known;
        }

        private Long position(TopicPartition place) {
            try {
                return real.position(place, Duration.ZERO);
            } catch (KafkaException | IllegalStateException unknownYet) {
                return null;
            }
        }
    }

    private long cutOf(TopicPartition place) {
        return place.topic().startsWith(prefix) ? Long.MAX_VALUE : cuts.getOrDefault(name(place), 0L);
    }

    private static String name(TopicPartition place) {
        return place.topic() + ":" + place.partition();
    }

    /** Return the records that are left, with the offsets that come next, which records have from 4.0 on. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> shortened(
            ConsumerRecords<byte[], byte[]> found,
            Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> kept,
            Map<TopicPartition, Long> ended) throws Exception {
        Method next;
        try {
            next = ConsumerRecords.class.getMethod("nextOffsets");
        } catch (NoSuchMethodException older) {
            return new ConsumerRecords<>(kept);
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>((Map<TopicPartition, OffsetAndMetadata>) next.invoke(found));
        ended.forEach((place, cut) -> {
            if (kept.containsKey(place)) {
                offsets.put(place, new OffsetAndMetadata(cut, last(kept.get(place)).leaderEpoch(), ""));
            } else {
                offsets.remove(place);
            }
        });
        return (ConsumerRecords<byte[], byte[]>) ConsumerRecords.class.getConstructor(Map.class, Map.class).newInstance(kept, offsets);
    }

    private static ConsumerRecord<byte[], byte[]> last(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.get(records.size() - 1);
    }

    private interface Answer {
        Object to(Method method, Object[] arguments) throws Throwable;
    }

    @SuppressWarnings("unchecked")
    private static <T> T proxy(Class<? super T> type, T real, Answer answer) {
        InvocationHandler handler = (itself, method, arguments) ->
            method.getDeclaringClass() == Object.class ? call(real, method, arguments) : answer.to(method, arguments);
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
    }

    private static Object call(Object owner, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(owner, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
