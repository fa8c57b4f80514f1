import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;

/** Calls what Kafka Streams keeps to itself: found by its name and by what it takes, since signatures differ between versions. */
final class Reflection {
    private static final Map<Class<?>, Class<?>> BOXES =
            Map.of(long.class, Long.class, int.class, Integer.class, byte.class, Byte.class, boolean.class, Boolean.class);

    private Reflection() {}

    static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName("org.apache.kafka.streams." + name);
    }

    static Object make(String type, Object... arguments) throws Exception {
        for (Constructor<?> constructor : type(type).getDeclaredConstructors()) {
            if (takes(constructor.getParameterTypes(), arguments)) {
                constructor.setAccessible(true);
                try {
                    return constructor.newInstance(arguments);
                } catch (InvocationTargetException problem) {
                    throw cause(problem);
                }
            }
        }
        throw new NoSuchMethodException(type + Arrays.toString(arguments));
    }

    /** Calls a static method. */
    static Object call(String type, String name, Object... arguments) throws Exception {
        return invoke(type(type), null, name, arguments);
    }

    /** Calls a method of an object; without the last argument where this version does not take it. */
    static Object on(Object object, String name, Object... arguments) throws Exception {
        try {
            return invoke(object.getClass(), object, name, arguments);
        } catch (NoSuchMethodException other) {
            return invoke(object.getClass(), object, name, Arrays.copyOf(arguments, arguments.length - 1));
        }
    }

    static Object field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    private static Object invoke(Class<?> type, Object object, String name, Object... arguments) throws Exception {
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().equals(name) && !method.isBridge() && takes(method.getParameterTypes(), arguments)) {
                method.setAccessible(true);
                try {
                    return method.invoke(object, arguments);
                } catch (InvocationTargetException problem) {
                    throw cause(problem);
                }
            }
        }
        throw new NoSuchMethodException(type + "." + name + Arrays.toString(arguments));
    }

    private static boolean takes(Class<?>[] parameters, Object[] arguments) {
        if (parameters.length != arguments.length) {
            return false;
        }
        for (int at = 0; at < parameters.length; at++) {
            Class<?> parameter = BOXES.getOrDefault(parameters[at], parameters[at]);
            if (arguments[at] == null ? parameters[at].isPrimitive() : !parameter.isInstance(arguments[at])) {
                return false;
            }
        }
        return true;
    }

    private static Exception cause(InvocationTargetException problem) {
        return problem.getCause() instanceof Exception found ? found : problem;
    }
}
