import java.time.Duration
import java.util.Properties
import java.util.concurrent.CountDownLatch
import org.apache.kafka.streams.KafkaStreams
import org.apache.kafka.streams.kstream.TimeWindows
import org.apache.kafka.streams.scala.ImplicitConversions._
import org.apache.kafka.streams.scala.StreamsBuilder
import org.apache.kafka.streams.scala.kstream.Materialized
import org.apache.kafka.streams.scala.serialization.Serdes._
import scala.collection.concurrent.TrieMap
import scala.collection.mutable

object Seen {
  private val counts = mutable.Map[String, Int]().withDefaultValue(0)
  def next(letter: String): Int = synchronized { counts(letter) += 1; counts(letter) }
  lazy val codes: Map[String, Int] = ('a' to 'h').map(each => each.toString -> each.toInt).toMap
}

/** Arguments as of Apps. */
object KeptInScala {
  private var latest = ""

  def main(arguments: Array[String]): Unit = {
    val config = new Properties()
    config.put("application.id", arguments(3))
    config.put("bootstrap.servers", arguments(1))
    config.put("state.dir", arguments(2))
    config.put("auto.offset.reset", "earliest")
    config.put("commit.interval.ms", "100")
    config.put("internal.leave.group.on.close", java.lang.Boolean.TRUE)
    val builder = new StreamsBuilder()
    val records = builder.stream[String, String](s"${arguments(3)}-in")
    val tries = TrieMap[String, String]()
    var count = 0
    val stores = Map[String, String => String](
      "pure" -> (_.toUpperCase),
      "pure-lazy" -> (value => Seen.codes.getOrElse(value.take(1), 0).toString),
      "singleton" -> (value => Seen.next(value.take(1)).toString),
      "own-object" -> { value => val before = latest; latest = value; before },
      "tries" -> (value => tries.put(value.take(1), value).getOrElse("none")),
      "captured" -> { _ => count += 1; count.toString }
    )
    stores.foreach { case (name, function) =>
      records.mapValues(value => function(value)).groupByKey
        .reduce((held, value) => s"$held,$value".takeRight(40))(Materialized.as(name))
    }
    val windows = TimeWindows.ofSizeAndGrace(Duration.ofSeconds(30), Duration.ofHours(1))
    records.groupByKey.windowedBy(windows).count()(Materialized.as("pure-windows"))
    var every = 0
    records.filter { (_, _) => every += 1; every % 3 != 0 }.groupByKey.windowedBy(windows).count()(Materialized.as("kept-windows"))
    val streams = new KafkaStreams(builder.build(), config)
    sys.ShutdownHookThread {
      streams.close(Duration.ofMinutes(1))
      println("STOPPED")
    }
    streams.start()
    new CountDownLatch(1).await()
  }
}
