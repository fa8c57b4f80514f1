import java.time.Duration;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Which cards pay more in an hour than they may, with the Processor API: topics {@code payments} and {@code limits}, both keyed by the card.
 *
 * <p>The store {@code cards} has each card's limit and what it has paid since the last full hour; a payment beyond the limit is written to
 * {@code alerts}. When stream time reaches the next full hour, what was paid before is forgotten, and so are cards without a limit.
 */
public final class FraudApplication {
    static final Example EXAMPLE = new Example("fraud-app", FraudApplication::topology);
    private static final long HOUR_MS = Duration.ofHours(1).toMillis();

    private FraudApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        return new Topology()
                .addSource("payments", Serdes.String().deserializer(), Avro.serde(Payment.class).deserializer(), topic.apply("payments"))
                .addSource("limits", Serdes.String().deserializer(), Avro.serde(Limit.class).deserializer(), topic.apply("limits"))
                .addProcessor("watch", Watch::new, "payments", "limits")
                .addStateStore(
                        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("cards"), Serdes.String(), Avro.serde(Card.class)), "watch")
                .addSink("alerts", topic.apply("alerts"), Serdes.String().serializer(), Serdes.String().serializer(), "watch");
    }

    private static final class Watch implements Processor<String, Object, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, Card> cards;

        @Override
        public void init(ProcessorContext<String, String> given) {
            context = given;
            cards = given.getStateStore("cards");
            given.schedule(Duration.ofMillis(HOUR_MS), PunctuationType.STREAM_TIME, this::forget);
        }

        @Override
        public void process(Record<String, Object> record) {
            Card card = cards.get(record.key());
            card = card == null ? new Card() : card;
            if (record.value() instanceof Limit limit) {
                card.limit = limit.cents;
            } else if (record.value() instanceof Payment payment) {
                long hour = record.timestamp() / HOUR_MS;
                card.paid = payment.cents + (hour == card.hour ? card.paid : 0);
                card.hour = hour;
                if (card.limit > 0 && card.paid > card.limit) {
                    String alert = payment.shop + ": " + card.paid + " of " + card.limit;
                    context.forward(record.withValue(alert));
                }
            }
            cards.put(record.key(), card);
        }

        private void forget(long time) {
            try (KeyValueIterator<String, Card> all = cards.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Card> each = all.next();
                    if (each.value.paid > 0 && each.value.hour < time / HOUR_MS) {
                        each.value.paid = 0;
                        cards.put(each.key, each.value.limit > 0 ? each.value : null);
                    }
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}

/** A value of {@code payments}. */
final class Payment {
    String shop;
    long cents;
}

/** A value of {@code limits}: how much a card may pay in an hour. */
final class Limit {
    long cents;
}

/** A value of the store. */
final class Card {
    long limit;
    long hour;
    long paid;
}
