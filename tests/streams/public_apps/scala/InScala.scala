import java.nio.file.{Files, Path}
import java.time.Duration
import java.util.Properties
import org.apache.kafka.streams.KafkaStreams
import org.apache.kafka.streams.kstream.TimeWindows
import org.apache.kafka.streams.scala.ImplicitConversions._
import org.apache.kafka.streams.scala.StreamsBuilder
import org.apache.kafka.streams.scala.kstream.Materialized
import org.apache.kafka.streams.scala.serialization.Serdes._

/** Words counted, and the lengths of lines by minute: after the documented topology of the Scala DSL in Apache Kafka's developer guide. */
object InScala extends App {
  val config = new Properties()
  config.load(Files.newBufferedReader(Path.of(args(0))))
  val builder = new StreamsBuilder()
  val lines = builder.stream[String, String](config.getProperty("in"))
  lines
    .flatMapValues(_.toLowerCase.split("\\W+").toList)
    .groupBy((_, word) => word)
    .count()(Materialized.as("words"))
    .toStream
    .to(config.getProperty("out"))
  lines.groupByKey
    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofHours(1)))
    .aggregate(0L)((_, line, sum) => sum + line.length)(Materialized.as("lengths"))
  val streams = new KafkaStreams(builder.build(), config)
  sys.ShutdownHookThread { streams.close(Duration.ofMinutes(1)) }
  streams.start()
}
