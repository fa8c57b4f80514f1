package kops.runner;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.record.TimestampType;

/**
 * All that differs between Kafka Streams 2.8 and 4.4, and all that it keeps to itself.
 *
 * <p>The runner is compiled for 2.8 and calls directly only what every version has. Constructors are called here: each parameter gets the
 * next of the given arguments that fits its type, so that one call serves every version.
 */
final class Versions {
    static final String INTERNALS = "org.apache.kafka.streams.processor.internals.";
    static final String CACHE = "org.apache.kafka.streams.state.internals.ThreadCache";

    private static final Map<Class<?>, Class<?>> BOXES =
            Map.of(long.class, Long.class, int.class, Integer.class, boolean.class, Boolean.class, double.class, Double.class);
    private static final MethodHandle RECORD = recordConstructor();

    private Versions() {}

    /** The version of the library, in the file from which it tells its own; "unknown" where a program comes without that file. */
    static String library() {
        Properties found = new Properties();
        try (InputStream file = TopicPartition.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            if (file != null) {
                found.load(file);
            }
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
        return found.getProperty("version", "unknown").trim();
    }

    /** What prefixes log lines, of whichever package (4.4 moved it): as the constructor of a cache takes it. */
    static Object logContext(String prefix) {
        return Arrays.stream(type(CACHE).getDeclaredConstructors())
                .flatMap(constructor -> Arrays.stream(constructor.getParameterTypes()))
                .filter(type -> type.getSimpleName().equals("LogContext"))
                .findFirst()
                .map(type -> make(type.getName(), prefix))
                .orElseThrow(() -> new UnlikeLibrary("LogContext of " + CACHE));
    }

    static Class<?> type(String name) {
        try {
            return Class.forName(name, true, Versions.class.getClassLoader());
        } catch (ClassNotFoundException problem) {
            throw new UnlikeLibrary("class " + name);
        }
    }

    /** A class of Kafka Streams that some versions do not have. */
    static Optional<Class<?>> typeIfAny(String name) {
        try {
            return Optional.of(Class.forName(name, true, Versions.class.getClassLoader()));
        } catch (ClassNotFoundException none) {
            return Optional.empty();
        }
    }

    /**
     * Makes an object by the constructor with the most parameters, private ones aside.
     *
     * <p>Of several arguments of one type, the first goes to the first parameter of that type; what nothing fits is null or false.
     */
    static Object make(String type, Object... arguments) {
        Constructor<?> constructor = Arrays.stream(type(type).getDeclaredConstructors())
                .filter(one -> !one.isSynthetic() && !java.lang.reflect.Modifier.isPrivate(one.getModifiers()))
                .max(Comparator.comparingInt(Constructor::getParameterCount))
                .orElseThrow(() -> new UnlikeLibrary("constructor of " + type));
        List<Object> left = new ArrayList<>(Arrays.asList(arguments));
        Class<?>[] parameters = constructor.getParameterTypes();
        Object[] passed = new Object[parameters.length];
        for (int at = 0; at < parameters.length; at++) {
            Class<?> wanted = BOXES.getOrDefault(parameters[at], parameters[at]);
            passed[at] = wanted == Boolean.class ? Boolean.FALSE : null;
            for (int candidate = 0; candidate < left.size(); candidate++) {
                if (wanted.isInstance(left.get(candidate))) {
                    passed[at] = left.remove(candidate);
                    break;
                }
            }
            if (passed[at] == null && parameters[at].isPrimitive()) {
                throw new UnlikeLibrary("constructor that could be called, but " + constructor);
            }
        }
        try {
            constructor.setAccessible(true);
            return constructor.newInstance(passed);
        } catch (ReflectiveOperationException problem) {
            throw unwrapped(problem);
        }
    }

    /** Calls a method by name and number of arguments, of the object's class or of one above it. */
    static Object call(Object object, String name, Object... arguments) {
        Method method = method(object.getClass(), name, arguments)
                .orElseThrow(() -> new UnlikeLibrary("method " + object.getClass().getName() + "." + name));
        try {
            return method.invoke(object, arguments);
        } catch (ReflectiveOperationException problem) {
            throw unwrapped(problem);
        }
    }

    /** Calls the first of these methods without arguments that this version has. */
    static Object callFirst(Object object, String... names) {
        for (String name : names) {
            if (method(object.getClass(), name).isPresent()) {
                return call(object, name);
            }
        }
        throw new UnlikeLibrary("method " + object.getClass().getName() + "." + String.join(", or ", names));
    }

    static boolean has(Object object, String name, Object... arguments) {
        return method(object.getClass(), name, arguments).isPresent();
    }

    private static Optional<Method> method(Class<?> type, String name, Object... arguments) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Method method : at.getDeclaredMethods()) {
                if (method.getName().equals(name) && !method.isBridge() && fits(method.getParameterTypes(), arguments)) {
                    method.setAccessible(true);
                    return Optional.of(method);
                }
            }
        }
        return Optional.empty();
    }

    private static boolean fits(Class<?>[] parameters, Object[] arguments) {
        if (parameters.length != arguments.length) {
            return false;
        }
        for (int at = 0; at < parameters.length; at++) {
            if (arguments[at] != null && !BOXES.getOrDefault(parameters[at], parameters[at]).isInstance(arguments[at])) {
                return false;
            }
        }
        return true;
    }

    /** A method of exactly these parameters, for calls that are made often. */
    static MethodHandle handle(Class<?> type, String name, Class<?>... parameters) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Method method = at.getDeclaredMethod(name, parameters);
                method.setAccessible(true);
                return MethodHandles.lookup().unreflect(method);
            } catch (NoSuchMethodException next) {
                // perhaps the class above has it
            } catch (IllegalAccessException problem) {
                throw new IllegalStateException(problem);
            }
        }
        throw new UnlikeLibrary("method " + type.getName() + "." + name);
    }

    static Field field(Class<?> type, String name) {
        return fieldIfAny(type, name).orElseThrow(() -> new UnlikeLibrary("field " + type.getName() + "." + name));
    }

    /** A field that some classes or versions do not have. */
    static Optional<Field> fieldIfAny(Class<?> type, String name) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Field field = at.getDeclaredField(name);
                field.setAccessible(true);
                return Optional.of(field);
            } catch (NoSuchFieldException next) {
                // perhaps the class above has it
            }
        }
        return Optional.empty();
    }

    static Object get(Object object, String name) {
        try {
            return field(object.getClass(), name).get(object);
        } catch (IllegalAccessException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** An object of an interface that may be the library's own; what it is asked goes to the handler. */
    static Object proxy(String type, InvocationHandler handler) {
        Class<?> wanted = type(type);
        return Proxy.newProxyInstance(wanted.getClassLoader(), new Class<?>[] {wanted}, handler);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object constant(String type, String name) {
        return Enum.valueOf((Class) type(type), name);
    }

    static ConsumerRecord<byte[], byte[]> record(
            String topic, int partition, long offset, long timestamp, byte[] key, byte[] value, Headers headers) {
        int keySize = key == null ? ConsumerRecord.NULL_SIZE : key.length;
        int valueSize = value == null ? ConsumerRecord.NULL_SIZE : value.length;
        try {
            return cast((ConsumerRecord<?, ?>) RECORD.invokeExact(
                    topic, partition, offset, timestamp, keySize, valueSize, (Object) key, (Object) value, headers));
        } catch (Throwable problem) {
            throw unwrapped(problem);
        }
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecord<byte[], byte[]> cast(ConsumerRecord<?, ?> record) {
        return (ConsumerRecord<byte[], byte[]>) record;
    }

    /** The constructor with headers and the leader's epoch: with a checksum up to 3.9, without one from 3.0 on. */
    private static MethodHandle recordConstructor() {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        MethodType start = MethodType.methodType(void.class, String.class, int.class, long.class, long.class, TimestampType.class);
        MethodType end = MethodType.methodType(void.class, int.class, int.class, Object.class, Object.class, Headers.class, Optional.class);
        try {
            MethodHandle made;
            try {
                made = lookup.findConstructor(ConsumerRecord.class, start.appendParameterTypes(end.parameterList()));
            } catch (NoSuchMethodException older) {
                made = MethodHandles.insertArguments(
                        lookup.findConstructor(
                                ConsumerRecord.class, start.appendParameterTypes(Long.class).appendParameterTypes(end.parameterList())),
                        5,
                        (Object) null);
            }
            made = MethodHandles.insertArguments(made, 4, TimestampType.CREATE_TIME);
            return MethodHandles.insertArguments(made, 9, Optional.empty());
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** What a producer says of a record that it wrote. */
    static RecordMetadata written(TopicPartition to) {
        try {
            for (Constructor<?> constructor : RecordMetadata.class.getConstructors()) {
                if (constructor.getParameterCount() == 6) { // from 3.0 on
                    return (RecordMetadata) constructor.newInstance(to, 0L, 0, 0L, 0, 0);
                }
            }
            return (RecordMetadata) RecordMetadata.class.getConstructors()[0].newInstance(to, 0L, 0L, 0L, 0L, 0, 0);
        } catch (ReflectiveOperationException problem) {
            throw unwrapped(problem);
        }
    }

    static RuntimeException unwrapped(Throwable problem) {
        Throwable cause = problem instanceof InvocationTargetException ? problem.getCause() : problem;
        if (cause instanceof RuntimeException) {
            return (RuntimeException) cause;
        }
        if (cause instanceof Error) {
            throw (Error) cause;
        }
        return new IllegalStateException(cause);
    }
}
