import java.nio.ByteBuffer;
import java.util.Properties;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Count, lowest and highest temperature of weather stations, whose names a global table has: after the documented topology of Quarkus' guide
 * to Kafka Streams, with a serde of its own.
 */
public final class Weather {
    private Weather() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final StreamsBuilder builder = new StreamsBuilder();
        final GlobalKTable<Integer, String> stations =
            builder.globalTable(settings.getProperty("stations"), Consumed.with(Serdes.Integer(), Serdes.String()));
        builder.stream(settings.getProperty("in"), Consumed.with(Serdes.Integer(), Serdes.String()))
            .join(stations, (station, reading) -> station, (reading, station) -> station + ";" + reading.split(";")[1])
            .groupByKey()
            .aggregate(Seen::new, (station, reading, seen) -> seen.with(reading), Materialized
                .<Integer, Seen>as(Stores.persistentKeyValueStore("weather-stations-store"))
                .withKeySerde(Serdes.Integer()).withValueSerde(new SeenSerde()))
            .toStream()
            .mapValues(Seen::toString)
            .to(settings.getProperty("out"), Produced.with(Serdes.Integer(), Serdes.String()));
        Given.run(builder.build(), settings);
    }

    /** What was seen of a station. */
    static final class Seen {
        private String name = "";
        private int count;
        private double least = Double.MAX_VALUE;
        private double most = -Double.MAX_VALUE;

        Seen with(final String reading) {
            final double temperature = Double.parseDouble(reading.split(";")[1]);
            name = reading.split(";")[0];
            count++;
            least = Math.min(least, temperature);
            most = Math.max(most, temperature);
            return this;
        }

        @Override
        public String toString() {
            return name + " " + count + " " + least + " " + most;
        }
    }

    /** Numbers first, then the name. */
    static final class SeenSerde implements Serde<Seen> {
        @Override
        public Serializer<Seen> serializer() {
            return (topic, seen) -> {
                if (seen == null) return null;
                final byte[] name = seen.name.getBytes();
                return ByteBuffer.allocate(20 + name.length)
                    .putInt(seen.count).putDouble(seen.least).putDouble(seen.most).put(name).array();
            };
        }

        @Override
        public Deserializer<Seen> deserializer() {
            return (topic, bytes) -> {
                if (bytes == null) return null;
                final ByteBuffer numbers = ByteBuffer.wrap(bytes);
                final Seen seen = new Seen();
                seen.count = numbers.getInt();
                seen.least = numbers.getDouble();
                seen.most = numbers.getDouble();
                seen.name = new String(bytes, 20, bytes.length - 20);
                return seen;
            };
        }
    }
}
