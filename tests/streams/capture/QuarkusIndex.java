import io.quarkus.bootstrap.runner.SerializedApplication;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Writes what the build of a Quarkus application writes for its launcher: the main class, and where classes are. */
public final class QuarkusIndex {
    private QuarkusIndex() {}

    /** @param arguments folder of the application, main class */
    public static void main(final String[] arguments) throws Exception {
        final Path root = Path.of(arguments[0]);
        final List<Path> jars;
        try (Stream<Path> found = Files.walk(root)) {
            jars = found.filter(each -> each.toString().matches(".*/(app|lib/main)/[^/]+\\.jar")).sorted().collect(Collectors.toList());
        }
        Files.createDirectories(root.resolve("quarkus"));
        try (OutputStream out = Files.newOutputStream(root.resolve("quarkus").resolve("quarkus-application.dat"))) {
            SerializedApplication.write(out, arguments[1], root, jars, List.of(), List.of());
        }
    }
}
