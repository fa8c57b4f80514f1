package kops.agent;

import java.io.Reader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Properties;

/** Captures what a static method of a program returns, for who would rather not start its main. */
public final class Launch {
    private Launch() {}

    /** @param arguments com.acme.App::topology, then a file of properties */
    public static void main(final String[] arguments) throws Exception {
        final Properties config = new Properties();
        try (Reader reader = Files.newBufferedReader(Paths.get(arguments[1]))) {
            config.load(reader);
        }
        try {
            Hook.constructed(topology(arguments[0], config), config);
        } catch (final InvocationTargetException error) {
            Hook.session.fail(arguments[0] + " failed", error.getCause());
        } catch (final ReflectiveOperationException | IllegalArgumentException | LinkageError error) {
            Hook.session.fail("cannot call " + arguments[0], error);
        }
    }

    private static Object topology(final String place, final Properties config) throws ReflectiveOperationException {
        final String[] names = place.split("::");
        final Class<?> type = Class.forName(names[0], true, Thread.currentThread().getContextClassLoader());
        for (final Method method : type.getDeclaredMethods()) {
            final Class<?>[] given = method.getParameterTypes();
            final boolean configured = given.length == 1 && given[0] == Properties.class;
            if (!method.getName().equals(names[1]) || given.length > 0 && !configured) continue;
            method.setAccessible(true);
            final Object made = configured ? method.invoke(null, config) : method.invoke(null);
            if (Read.is(made, "org.apache.kafka.streams.StreamsBuilder")) {
                return made.getClass().getMethod("build", Properties.class).invoke(made, config);
            }
            if (Read.is(made, "org.apache.kafka.streams.Topology")) return made;
            throw new IllegalArgumentException("it returns " + Read.className(made) + ", not a Topology or StreamsBuilder");
        }
        throw new IllegalArgumentException(names[0] + " has no method " + names[1] + "() or " + names[1] + "(Properties)");
    }
}
