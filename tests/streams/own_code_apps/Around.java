import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Timestamp;
import java.text.SimpleDateFormat;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Calendar;
import java.util.Date;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/** An application whose stores each depend on something that is around it; the settings name a file that it reads. */
public final class Around {
    private Around() {}

    /** @param arguments as of Apps; the last one is config.file=PATH */
    public static void main(final String[] arguments) throws Exception {
        final long atStart = Long.parseLong(System.getenv("MIN_AMOUNT") == null ? "0" : System.getenv("MIN_AMOUNT"));
        Apps.run(arguments, topology(arguments[3] + "-", atStart, fromFile(arguments[arguments.length - 1].split("=", 2)[1])));
    }

    private static long fromFile(final String path) throws IOException {
        if (!Files.exists(Path.of(path))) return 0;
        final Properties found = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(path))) {
            found.load(reader);
        }
        return Long.parseLong(found.getProperty("min.amount"));
    }

    private static Topology topology(final String topics, final long atStart, final long ofFile) {
        final long ofMap = Long.parseLong(System.getenv().getOrDefault("MAP_AMOUNT", "0"));
        final Map<String, Function<byte[], String>> stores = new TreeMap<>();
        stores.put("charset", String::new);
        stores.put("variable", value -> amount(value) < atStart ? null : text(value));
        stores.put("map", value -> amount(value) < ofMap ? null : text(value));
        stores.put("file", value -> amount(value) < ofFile ? null : text(value));
        stores.put("property", value -> amount(value) < Long.getLong("min.amount", 0) ? null : text(value));
        stores.put("late", value -> amount(value) < Long.parseLong(String.valueOf(System.getenv("LATE_AMOUNT")).replace("null", "0")) ? null : text(value));
        stores.put("zone", value -> Instant.ofEpochMilli(time(value)).atZone(ZoneId.systemDefault()).toLocalDate().toString());
        stores.put("format", value -> new SimpleDateFormat("yyyy-MM-dd").format(new Date(time(value))));
        stores.put("timestamp", value -> new Timestamp(time(value)).toString());
        stores.put("calendar", value -> {
            final Calendar calendar = Calendar.getInstance();
            calendar.setTimeInMillis(time(value));
            return Integer.toString(calendar.get(Calendar.DAY_OF_MONTH));
        });
        stores.put("grouping", value -> String.format("%,d", amount(value) * 1000));
        stores.put("letters", value -> "TITLE".toLowerCase());
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, byte[]> in = builder.stream(topics + "in", Consumed.with(Serdes.String(), Serdes.ByteArray()));
        stores.forEach((name, function) -> in.mapValues(function::apply).filter((key, value) -> value != null).groupByKey()
            .reduce((held, value) -> value, Materialized.as(name)));
        return builder.build();
    }

    private static String text(final byte[] value) {
        return new String(value, StandardCharsets.UTF_8);
    }

    private static long amount(final byte[] value) {
        return Long.parseLong(text(value).split(" ")[1]);
    }

    private static long time(final byte[] value) {
        return Long.parseLong(text(value).split(" ")[2]);
    }
}
