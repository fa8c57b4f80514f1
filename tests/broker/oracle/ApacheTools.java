import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

/** Apache's tools, as often as wanted in one JVM: arguments by tabs on a line, the tool's class last; its output up to the next END. */
public final class ApacheTools {
    private ApacheTools() {}

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status + " " + message);
        });
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split("\t", -1);
            var arguments = Arrays.copyOf(words, words.length - 1);
            try {
                Class.forName(words[words.length - 1]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException ended) {
                if (!String.valueOf(ended.getCause().getMessage()).startsWith("exit 0")) {
                    System.out.println("FAILED " + ended.getCause());
                }
            }
            System.out.println();
            System.out.println("END");
            System.out.flush();
        }
    }
}
