import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.avro.reflect.ReflectData;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The five songs of a genre that are played most: after the documented topology of Confluent's Kafka Music, with plain classes in Avro's
 * single-object encoding. A play is "SONG,SECONDS", a song "GENRE,NAME".
 */
public final class Charts {
    private Charts() {}

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = Given.settings(arguments);
        final Serde<Song> songs = new Avro<>(Song.class);
        final Serde<Plays> counts = new Avro<>(Plays.class);
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<Long, Song> songTable = builder
            .stream(settings.getProperty("songs"), Consumed.with(Serdes.Long(), Serdes.String()))
            .mapValues((id, text) -> new Song(id, text.split(",")[0], text.split(",")[1]))
            .toTable(Materialized.<Long, Song, KeyValueStore<Bytes, byte[]>>as("all-songs").withKeySerde(Serdes.Long()).withValueSerde(songs));
        final KStream<Long, String> plays = builder
            .stream(settings.getProperty("in"), Consumed.with(Serdes.String(), Serdes.String()))
            .filter((user, play) -> Integer.parseInt(play.split(",")[1]) >= 30)
            .map((user, play) -> new KeyValue<>(Long.valueOf(play.split(",")[0]), play));
        final KTable<Song, Long> played = plays
            .leftJoin(songTable, (play, song) -> song, Joined.with(Serdes.Long(), Serdes.String(), songs))
            .groupBy((id, song) -> song, Grouped.with("songs-played", songs, songs))
            .count(Materialized.<Song, Long, KeyValueStore<Bytes, byte[]>>as("song-play-count").withValueSerde(Serdes.Long()));
        played
            .groupBy((song, count) -> KeyValue.pair(song.genre, new Plays(song.id, count)), Grouped.with("by-genre", Serdes.String(), counts))
            .aggregate(Five::new, (genre, one, five) -> five.add(one), (genre, one, five) -> five.remove(one),
                Materialized.<String, Five, KeyValueStore<Bytes, byte[]>>as("top-five-songs-by-genre").withValueSerde(new FiveSerde()))
            .toStream()
            .mapValues(Five::toString)
            .to(settings.getProperty("out"), Produced.with(Serdes.String(), Serdes.String()));
        Given.run(builder.build(), settings);
    }

    /** A song. */
    public static final class Song {
        long id;
        String genre;
        String name;

        Song() {}

        Song(final long id, final String genre, final String name) {
            this.id = id;
            this.genre = genre;
            this.name = name;
        }
    }

    /** How often a song was played. */
    public static final class Plays {
        long song;
        long count;

        Plays() {}

        Plays(final long song, final long count) {
            this.song = song;
            this.count = count;
        }
    }

    /** The songs of a genre, of which the first five count. */
    static final class Five {
        private final Map<Long, Plays> current = new HashMap<>();
        private final TreeSet<Plays> sorted =
            new TreeSet<>((one, other) -> one.count != other.count ? Long.compare(other.count, one.count) : Long.compare(one.song, other.song));

        Five add(final Plays one) {
            final Plays before = current.put(one.song, one);
            if (before != null) sorted.remove(before);
            sorted.add(one);
            if (sorted.size() > 5) current.remove(sorted.pollLast().song);
            return this;
        }

        Five remove(final Plays one) {
            sorted.remove(one);
            current.remove(one.song);
            return this;
        }

        @Override
        public String toString() {
            final StringBuilder text = new StringBuilder();
            for (final Plays one : sorted) text.append(one.song).append('=').append(one.count).append(' ');
            return text.toString();
        }
    }

    /** Numbers one after the other. */
    static final class FiveSerde implements Serde<Five> {
        @Override
        public Serializer<Five> serializer() {
            return (topic, five) -> {
                if (five == null) return null;
                final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                try (DataOutputStream out = new DataOutputStream(bytes)) {
                    for (final Iterator<Plays> each = five.sorted.iterator(); each.hasNext();) {
                        final Plays one = each.next();
                        out.writeLong(one.song);
                        out.writeLong(one.count);
                    }
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
                return bytes.toByteArray();
            };
        }

        @Override
        public Deserializer<Five> deserializer() {
            return (topic, bytes) -> {
                if (bytes == null) return null;
                final Five five = new Five();
                try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
                    while (in.available() > 0) five.add(new Plays(in.readLong(), in.readLong()));
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
                return five;
            };
        }
    }

    /** Avro's encoding of a plain class, with a fingerprint of its schema in front. */
    static final class Avro<T> implements Serde<T> {
        private final BinaryMessageEncoder<T> encoder;
        private final BinaryMessageDecoder<T> decoder;

        Avro(final Class<T> type) {
            final Schema schema = ReflectData.get().getSchema(type);
            encoder = new BinaryMessageEncoder<>(ReflectData.get(), schema);
            decoder = new BinaryMessageDecoder<>(ReflectData.get(), schema);
        }

        @Override
        public Serializer<T> serializer() {
            return (topic, value) -> {
                try {
                    if (value == null) return null;
                    final java.nio.ByteBuffer bytes = encoder.encode(value);
                    final byte[] copy = new byte[bytes.remaining()];
                    bytes.get(copy);
                    return copy;
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
            };
        }

        @Override
        public Deserializer<T> deserializer() {
            return (topic, bytes) -> {
                try {
                    return bytes == null ? null : decoder.decode(bytes);
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
            };
        }
    }
}
