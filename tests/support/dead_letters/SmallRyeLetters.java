import io.smallrye.mutiny.Uni;
import io.smallrye.mutiny.operators.multi.processors.UnicastProcessor;
import io.smallrye.reactive.messaging.kafka.IncomingKafkaRecord;
import io.smallrye.reactive.messaging.kafka.KafkaConnectorIncomingConfiguration;
import io.smallrye.reactive.messaging.kafka.commit.KafkaCommitHandler;
import io.smallrye.reactive.messaging.kafka.fault.KafkaDeadLetterQueue;
import io.smallrye.reactive.messaging.kafka.fault.KafkaDelayedRetryTopic;
import io.smallrye.reactive.messaging.kafka.fault.KafkaFailureHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.eclipse.microprofile.config.Config;
import org.eclipse.microprofile.reactive.messaging.Message;

/** Lets SmallRye's own classes make dead letters, and prints their headers. */
public final class SmallRyeLetters {
    public static void main(String[] arguments) {
        Headers before = new RecordHeaders().add("trace-id", "t1".getBytes());
        Handlers queue = processor -> new KafkaDeadLetterQueue("orders", "orders-dlq", null, processor);
        print("smallrye", sent(queue, "orders", 3, 77, before, failed("unknown")));
        Headers again = new RecordHeaders(sent(queue, "earlier", 1, 5, before, failed("first")));
        print("smallrye-again", sent(queue, "orders", 3, 77, again, failed("unknown")));
        Headers retried = new RecordHeaders(sent(SmallRyeLetters::delayed, "orders", 3, 77, before, failed("first")));
        print("smallrye-retried", sent(SmallRyeLetters::delayed, "orders_retry_1000", 3, 5, retried, failed("unknown")));
        System.exit(0);
    }

    private static KafkaFailureHandler delayed(UnicastProcessor<Message<?>> processor) {
        Set<String> required = Set.of("channel-name", "value.deserializer");
        Config config = (Config) Proxy.newProxyInstance(
                SmallRyeLetters.class.getClassLoader(), new Class<?>[] {Config.class},
                (proxy, method, given) -> required.contains(given[0]) ? Optional.of("orders") : Optional.empty());
        KafkaConnectorIncomingConfiguration settings = new KafkaConnectorIncomingConfiguration(config);
        return new KafkaDelayedRetryTopic(
                "orders", io.vertx.mutiny.core.Vertx.vertx(), settings, List.of("orders_retry_1000"), 2, 60_000, "orders-dlq", processor, null, null);
    }

    private static Exception failed(String what) {
        return new RuntimeException("cannot bill", new IllegalStateException("customer 17 is " + what));
    }

    private interface Handlers {
        KafkaFailureHandler make(UnicastProcessor<Message<?>> processor);
    }

    private static List<Header> sent(Handlers handlers, String topic, int partition, long offset, Headers headers, Exception failed) {
        UnicastProcessor<Message<?>> processor = UnicastProcessor.create();
        List<Header> found = new ArrayList<>();
        processor.subscribe().with(message -> ((ProducerRecord<?, ?>) message.getPayload()).headers().forEach(found::add));
        ConsumerRecord<String, String> record =
                new ConsumerRecord<>(
                        topic, partition, offset, 1_700_000_000_000L, TimestampType.CREATE_TIME, 1, 1, "k", "v", headers, Optional.empty());
        KafkaFailureHandler handler = handlers.make(processor);
        KafkaCommitHandler commits = new KafkaCommitHandler() {
            @Override
            public <K, V> Uni<Void> handle(IncomingKafkaRecord<K, V> one) {
                return Uni.createFrom().voidItem();
            }
        };
        handler.handle(new IncomingKafkaRecord<>(record, "orders", 0, commits, handler, false, false), failed, null)
                .subscribe().with(done -> {}, thrown -> {});
        return found;
    }

    private static void print(String family, List<Header> headers) {
        for (Header header : headers) {
            System.out.println(family + "\t" + header.key() + "\t" + Base64.getEncoder().encodeToString(header.value()));
        }
    }
}
