package kops.agent;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;

/** Reflection on the library of the program. */
final class Read {
    private Read() {}

    /** Thrown where the library has no such member, which is not the same as a null. */
    static final class Absent extends RuntimeException {
        private static final long serialVersionUID = 1;

        Absent(final String message) {
            super(message);
        }
    }

    /** Return the value of the first of these fields that the class or one above it has. */
    static Object field(final Object owner, final String... names) {
        for (final String name : names) {
            for (Class<?> each = owner.getClass(); each != null; each = each.getSuperclass()) {
                try {
                    final Field field = each.getDeclaredField(name);
                    field.setAccessible(true);
                    return field.get(owner);
                } catch (final NoSuchFieldException error) {
                    continue;
                } catch (final IllegalAccessException error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new Absent(owner.getClass().getName() + " has no field " + String.join(" or ", names));
    }

    static Object fieldOrNull(final Object owner, final String... names) {
        try {
            return field(owner, names);
        } catch (final Absent error) {
            return null;
        }
    }

    static boolean has(final Object owner, final String name) {
        return has(owner, name, 0);
    }

    static boolean has(final Object owner, final String name, final int arguments) {
        return method(owner.getClass(), name, arguments) != null;
    }

    /** Call the method of this name that takes this many arguments. */
    static Object call(final Object owner, final String name, final Object... arguments) {
        final Method method = method(owner.getClass(), name, arguments.length);
        if (method == null) throw new Absent(owner.getClass().getName() + " has no method " + name);
        try {
            method.setAccessible(true);
            return method.invoke(owner, arguments);
        } catch (final InvocationTargetException error) {
            throw new IllegalStateException(name + " of " + owner.getClass().getName() + " failed: " + error.getCause(), error.getCause());
        } catch (final IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Method method(final Class<?> owner, final String name, final int arguments) {
        for (Class<?> each = owner; each != null; each = each.getSuperclass()) {
            for (final Method method : each.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments && !method.isBridge()) return method;
            }
            for (final Class<?> declared : each.getInterfaces()) {
                final Method found = method(declared, name, arguments);
                if (found != null) return found;
            }
        }
        return null;
    }

    static List<Field> fields(final Object owner) {
        final List<Field> fields = new ArrayList<>();
        for (Class<?> each = owner.getClass(); each != null && each != Object.class; each = each.getSuperclass()) {
            for (final Field field : each.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive()) fields.add(field);
            }
        }
        return fields;
    }

    /** Whether an object is of a class or interface of this name. */
    static boolean is(final Object value, final String name) {
        return value != null && is(value.getClass(), name);
    }

    private static boolean is(final Class<?> type, final String name) {
        if (type == null) return false;
        if (type.getName().equals(name) || is(type.getSuperclass(), name)) return true;
        for (final Class<?> each : type.getInterfaces()) {
            if (is(each, name)) return true;
        }
        return false;
    }

    /** The name of an object's class; of a lambda, whose own name changes from start to start, that of the class that holds it. */
    static String className(final Object value) {
        if (value == null) return null;
        final String name = value.getClass().getName();
        final int lambda = name.indexOf("$$Lambda");
        return lambda < 0 ? name : name.substring(0, lambda) + "$$Lambda";
    }

    static Throwable root(final Throwable error) {
        return error.getCause() == null ? error : root(error.getCause());
    }
}
