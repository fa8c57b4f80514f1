import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * The help of Apache's tools, of many in one JVM: the tool's class and arguments by tabs on a line; what it prints up to the next END.
 *
 * <p>argparse4j calls System.exit after a help text, so a tool is ended when it flushes the text.
 */
public final class ApacheHelp {
    private ApacheHelp() {}

    private static final class Printed extends Error {
        Printed() {
            super("printed", null, false, false);
        }
    }

    private static final class Help extends ByteArrayOutputStream {
        private String text;

        @Override
        public void flush() {
            if (text == null && size() > 0) {
                text = toString(StandardCharsets.UTF_8);
            }
            if (text != null) {
                throw new Printed();
            }
        }
    }

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            throw new Printed();
        });
        var out = System.out;
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split("\t");
            var help = new Help();
            var captured = new PrintStream(help);
            System.setOut(captured);
            System.setErr(captured);
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (InvocationTargetException ended) {
                if (!(ended.getCause() instanceof Printed)) {
                    out.println("FAILED " + ended.getCause());
                }
            }
            out.println(help.text);
            out.println("END");
            out.flush();
        }
    }
}
