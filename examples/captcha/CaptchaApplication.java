import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * How busy each browser is, and whether it passed its last captcha: the topic {@code actions} (key, the browser; value, what it did) is
 * counted in the store {@code action-counts}, the topic {@code answers} (key, the browser; value, "passed" or "failed") reduced to the last
 * one in {@code last-answers}.
 *
 * <p>Both are left-joined into the store {@code checked}, value "COUNT ANSWER", or "COUNT open" while there is no answer. Every change of
 * it is written to {@code checked-browsers}.
 */
public final class CaptchaApplication {
    static final Example EXAMPLE = new Example("captcha-app", CaptchaApplication::topology);

    private CaptchaApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
        KTable<String, Long> actions =
                builder.stream(topic.apply("actions"), texts).groupByKey().count(Example.store("action-counts", Serdes.Long()));
        KTable<String, String> answers = builder.stream(topic.apply("answers"), texts)
                .groupByKey()
                .reduce((before, answer) -> answer, Example.store("last-answers", Serdes.String()));
        actions.leftJoin(answers, (count, answer) -> count + " " + (answer == null ? "open" : answer),
                        Example.store("checked", Serdes.String()))
                .toStream()
                .to(topic.apply("checked-browsers"), Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
