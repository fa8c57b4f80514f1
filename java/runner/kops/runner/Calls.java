package kops.runner;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.Set;

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

    /** The calls, with line feeds between them. */
    static String seen() {
        return lines("calls");
    }

    /** Those of constructors and static initializers outside of tasks. */
    static String initial() {
        return lines("initialCalls");
    }

    private static String lines(String name) {
        return HOOK.map(hook -> String.join("\n", strings(call(hook, name, new Class<?>[0])))).orElse("");
    }

    @SuppressWarnings("unchecked")
    private static Set<String> strings(Object found) {
        return (Set<String>) found;
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
