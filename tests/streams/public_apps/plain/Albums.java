import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Purchases of tracks with their albums' genres: after the documented topology of Confluent's tutorial on foreign-key joins. A purchase is
 * "ALBUM,TITLE,PRICE", an album "GENRE,ARTIST".
 */
public final class Albums {
    private Albums() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<Long, String> byNumber = Consumed.with(Serdes.Long(), Serdes.String());
        final KTable<Long, String> albums = builder.table(settings.getProperty("albums"), byNumber, Materialized.as("albums"));
        final KTable<Long, String> purchases = builder.table(settings.getProperty("in"), byNumber, Materialized.as("purchases"));
        purchases
            .join(albums, purchase -> Long.valueOf(purchase.split(",")[0]), (purchase, album) -> purchase + "|" + album, Materialized.as("interest"))
            .toStream()
            .to(settings.getProperty("out"), Produced.with(Serdes.Long(), Serdes.String()));
        Given.run(builder.build(), settings);
    }
}
