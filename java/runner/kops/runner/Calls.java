package kops.runner;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** What the agent sees a program call while a task runs: clocks, random numbers, the network. Without an agent nothing is seen. */
final class Calls {
    private static final Optional<Class<?>> HOOK = hook();

    private Calls() {}

    private static Optional<Class<?>> hook() {
        try {
            return Optional.of(Class.forName("kops.agent.Hook", true, null)); // of the bootstrap class path
        } catch (ClassNotFoundException none) {
            return Optional.empty();
        }
    }

    /** This thread begins a task. */
    static void watch() {
        HOOK.ifPresent(hook -> call(hook, "watch", new Class<?>[] {Thread.class}, Thread.currentThread()));
    }

    /** What threads of KafkaStreams do counts from now on. */
    static void watchStreamThreads() {
        HOOK.ifPresent(hook -> call(hook, "watchNamed", new Class<?>[] {String.class}, "-StreamThread-"));
    }

    /** The calls, with line feeds between them. */
    static String seen() {
        return lines("calls");
    }

    /** Those of constructors and static initializers outside of tasks. */
    static String initial() {
        return lines("initialCalls");
    }

    /** How many punctuators were scheduled in tasks of KafkaStreams, by type and sub-topology, such as STREAM_TIME.0. */
    static Map<String, Integer> schedules() {
        Map<String, Integer> found = new TreeMap<>();
        HOOK.ifPresent(hook -> numbers(call(hook, "schedules", new Class<?>[0]))
            .forEach((place, count) -> found.merge(place.substring(0, place.lastIndexOf('_')), count, Integer::sum)));
        return found;
    }

    private static String lines(String name) {
        return HOOK.map(hook -> String.join("\n", strings(call(hook, name, new Class<?>[0])))).orElse("");
    }

    @SuppressWarnings("unchecked")
    private static Set<String> strings(Object found) {
        return (Set<String>) found;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Integer> numbers(Object found) {
        return (Map<String, Integer>) found;
    }

    private static Object call(Class<?> hook, String name, Class<?>[] types, Object... arguments) {
        try {
            Method method = hook.getMethod(name, types);
            return method.invoke(null, arguments);
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }
}
