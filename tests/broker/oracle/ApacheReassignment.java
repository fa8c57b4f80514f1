import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/** What {@code kafka-reassign-partitions --generate} proposes: brokers "1:rack" on the first line, then "topic partition 1,2,3". */
public final class ApacheReassignment {
    private ApacheReassignment() {}

    @SuppressWarnings("unchecked")
    public static void main(String[] none) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        List<UsableBroker> brokers = new ArrayList<>();
        for (String text : lines.readLine().split(" ")) {
            var parts = text.split(":");
            brokers.add(new UsableBroker(Integer.parseInt(parts[0]), Optional.of(parts[1]), false));
        }
        Map<TopicPartition, List<Integer>> current = new HashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split(" ");
            current.put(
                new TopicPartition(words[0], Integer.parseInt(words[1])),
                Arrays.stream(words[2].split(",")).map(Integer::valueOf).toList());
        }
        var calculate = ReassignPartitionsCommand.class.getDeclaredMethod("calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        var proposed = (Map<TopicPartition, List<Integer>>) calculate.invoke(null, current, brokers);
        proposed.forEach((at, replicas) -> System.out.println(
            at.topic() + " " + at.partition() + " " + String.join(",", replicas.stream().map(String::valueOf).toList())));
    }
}
