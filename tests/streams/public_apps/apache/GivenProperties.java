import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** In place of the Properties of programs that have their settings in their code: those of the file that -Dgiven names are not changed. */
public class GivenProperties extends Properties {
    private static final long serialVersionUID = 1;
    private final Properties given = new Properties();

    public GivenProperties() {
        try (Reader file = Files.newBufferedReader(Path.of(System.getProperty("given")))) {
            given.load(file);
        } catch (final IOException error) {
            throw new IllegalStateException(error);
        }
        given.forEach(super::put);
    }

    @Override
    public synchronized Object put(final Object name, final Object value) {
        return given != null && given.containsKey(name) ? given.get(name) : super.put(name, value);
    }

    @Override
    public synchronized Object putIfAbsent(final Object name, final Object value) {
        return given != null && given.containsKey(name) ? given.get(name) : super.putIfAbsent(name, value);
    }
}
