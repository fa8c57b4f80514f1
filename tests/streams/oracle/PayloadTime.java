import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** The time of a record by its last header "ts", else by the field "ts" of its value; its own where neither is there. */
public final class PayloadTime implements TimestampExtractor {
    @Override
    public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
        Header header = record.headers().lastHeader("ts");
        if (header != null) {
            return Long.parseLong(new String(header.value(), StandardCharsets.UTF_8));
        }
        return record.value() instanceof JsonNode value && value.hasNonNull("ts") ? value.get("ts").longValue() : record.timestamp();
    }
}
