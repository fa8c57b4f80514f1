import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import org.apache.kafka.tools.consumer.group.CsvUtils;

/** The offsets of a CSV file, line by line, as kafka-consumer-groups reads them with --from-file for one group. */
final class OffsetsCsv implements Judge.Family {
    private final ObjectReader plain = CsvUtils.readerFor(CsvUtils.CsvRecordNoGroup.class);
    private final ObjectReader grouped = CsvUtils.readerFor(CsvUtils.CsvRecordWithGroup.class);

    @Override
    public Object judge(JsonNode given) throws Exception {
        String[] lines = given.textValue().split("\n");
        boolean single = true;
        try {
            plain.readValue(lines[0]);
        } catch (IOException other) {
            single = false;
        }
        ArrayNode rows = Judge.JSON.createArrayNode();
        for (String line : lines) {
            if (single) {
                CsvUtils.CsvRecordNoGroup read = plain.readValue(line);
                rows.addArray().add(read.getTopic()).add("" + read.getPartition()).add("" + read.getOffset());
            } else {
                CsvUtils.CsvRecordWithGroup read = grouped.readValue(line);
                rows.addArray().add(read.getGroup()).add(read.getTopic()).add("" + read.getPartition()).add("" + read.getOffset());
            }
        }
        return rows;
    }
}
