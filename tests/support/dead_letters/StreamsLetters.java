import java.util.Base64;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.errors.internals.DefaultErrorHandlerContext;
import org.apache.kafka.streams.errors.internals.ExceptionHandlerUtils;
import org.apache.kafka.streams.processor.TaskId;

/** Lets the class of Kafka Streams that makes dead letters (KIP-1034) make one, and prints its headers. */
public final class StreamsLetters {
    public static void main(String[] arguments) {
        DefaultErrorHandlerContext failed = new DefaultErrorHandlerContext(
                null, "orders", 3, 77, new RecordHeaders().add("trace-id", "t1".getBytes()), "node", new TaskId(0, 3), 1_700_000_000_000L,
                "k".getBytes(), "v".getBytes());
        Exception thrown = new RuntimeException("Listener failed", new IllegalStateException("customer 17 is unknown"));
        for (Header header :
                ExceptionHandlerUtils.buildDeadLetterQueueRecord("dead", "k".getBytes(), "v".getBytes(), failed, thrown).headers()) {
            System.out.println("kafka-streams\t" + header.key() + "\t" + Base64.getEncoder().encodeToString(header.value()));
        }
    }
}
