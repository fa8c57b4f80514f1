import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** Apache's kafka-consumer-groups, as often as wanted in one JVM: arguments by tabs on a line, its output up to the next END. */
public final class ApacheGroups {
    private ApacheGroups() {}

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status + " " + message);
        });
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                ConsumerGroupCommand.main(line.split("\t"));
            } catch (IllegalStateException ended) {
                System.out.println("FAILED " + ended.getMessage());
            }
            System.out.println();
            System.out.println("END");
            System.out.flush();
        }
    }
}
