import java.nio.file.Files
import java.nio.file.Path
import java.time.Duration
import java.util.Properties
import java.util.concurrent.CountDownLatch
import org.apache.kafka.common.serialization.Serdes
import org.apache.kafka.streams.KafkaStreams
import org.apache.kafka.streams.StreamsBuilder
import org.apache.kafka.streams.kstream.Consumed
import org.apache.kafka.streams.kstream.Materialized
import org.apache.kafka.streams.kstream.TimeWindows

/** A singleton that counts. */
object Seen {
    private val counts = mutableMapOf<String, Int>()
    fun next(letter: String): Int = counts.merge(letter, 1, Int::plus)!!
}

class Latest {
    companion object { var length = 0 }
}

val started: Map<String, Int> by lazy { ('a'..'h').associate { it.toString() to it.code } }
private var topLevel = 0L

/** Arguments as of Apps. */
fun main(arguments: Array<String>) {
    val config = Properties()
    config["application.id"] = arguments[3]
    config["bootstrap.servers"] = arguments[1]
    config["state.dir"] = arguments[2]
    config["default.key.serde"] = Serdes.StringSerde::class.java
    config["default.value.serde"] = Serdes.StringSerde::class.java
    config["auto.offset.reset"] = "earliest"
    config["commit.interval.ms"] = "100"
    config["internal.leave.group.on.close"] = true
    val builder = StreamsBuilder()
    val records = builder.stream("${arguments[3]}-in", Consumed.with(Serdes.String(), Serdes.String()))
    var captured = ""
    val stores = mapOf<String, (String) -> String>(
        "pure" to { value -> value.uppercase() },
        "pure-lazy" to { value -> started.getOrDefault(value.take(1), 0).toString() },
        "singleton" to { value -> Seen.next(value.take(1)).toString() },
        "companion" to { value -> Latest.length.toString().also { Latest.length = value.length } },
        "captured" to { value -> captured.also { captured = value } },
        "top-level" to { _ -> (++topLevel).toString() },
    )
    stores.forEach { (name, function) ->
        records.mapValues { value -> function(value) }.groupByKey()
            .reduce({ held, value -> "$held,$value".takeLast(40) }, Materialized.`as`(name))
    }
    val windows = TimeWindows.ofSizeAndGrace(Duration.ofSeconds(30), Duration.ofHours(1))
    records.groupByKey().windowedBy(windows).count(Materialized.`as`("pure-windows"))
    var every = 0
    records.filter { _, _ -> ++every % 3 != 0 }.groupByKey().windowedBy(windows).count(Materialized.`as`("kept-windows"))
    val streams = KafkaStreams(builder.build(), config)
    Runtime.getRuntime().addShutdownHook(Thread {
        streams.close(Duration.ofMinutes(1))
        println("STOPPED")
    })
    streams.start()
    CountDownLatch(1).await()
}
