import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * The captcha with plain tables on both sides: the table {@code requests} (key, the browser; value, the site) left-joined with the table
 * {@code answers} (key, the browser; value, "passed" or "failed") into the store {@code checked}, value "SITE ANSWER", or "SITE open" while
 * there is no answer.
 *
 * <p>The global table {@code sites} (key, the site; value, who owns it) has no changelog: each instance reads its topic. Every change of
 * {@code checked} is written to {@code checked-requests} with the owner of the site.
 */
public final class RequestsApplication {
    static final Example EXAMPLE = new Example("requests-app", RequestsApplication::topology);

    private RequestsApplication() {}

    static Topology topology(UnaryOperator<String> topic) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
        KTable<String, String> requests = builder.table(topic.apply("requests"), texts, Example.store("requests-store", Serdes.String()));
        KTable<String, String> answers = builder.table(topic.apply("answers"), texts, Example.store("answers-store", Serdes.String()));
        GlobalKTable<String, String> sites = builder.globalTable(topic.apply("sites"), texts);
        requests.leftJoin(answers, (site, answer) -> site + " " + (answer == null ? "open" : answer),
                        Example.store("checked", Serdes.String()))
                .toStream()
                .leftJoin(sites, (browser, checked) -> checked == null ? null : checked.substring(0, checked.indexOf(' ')),
                        (checked, owner) -> checked == null ? null : checked + " " + (owner == null ? "nobody" : owner))
                .to(topic.apply("checked-requests"), Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
