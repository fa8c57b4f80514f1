package kops.runner;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.security.CodeSource;
import java.util.Collection;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;

/**
 * What the program's functions and processors keep in fields, which a restart of the application forgets: found by comparing them.
 *
 * <p>Looked at are the objects that nodes hold, what these hold of the program's own classes, and static fields of all their classes; of
 * collections, numbers, texts and other values the content, of objects of other packages only which one it is. What was null and became
 * such an object is taken for what is made when it is first needed. Stores, contexts and serdes are left out.
 */
final class KeptFields {
    private static final String STREAMS = "org.apache.kafka.streams.";
    private static final int DEPTH = 12;
    private static final int MOST_OBJECTS = 20_000;
    private static final int MOST_ELEMENTS = 1_000;
    private static final List<String> OF_NODES = List.of(
        "processor", "fixedKeyProcessor", "supplier", "timestampExtractor", "partitioner", "topicExtractor");
    /** Through which the library holds what the program gave it. */
    private static final List<String> HOLDING = List.of(STREAMS + "kstream.", STREAMS + "scala.", STREAMS + "processor.internals.ProcessorAdapter",
        STREAMS + "processor.internals.NoOpProcessorWrapper", STREAMS + "internals.ApiUtils");
    private static final List<String> PLUMBING = List.of(STREAMS + "kstream.internals.AbstractStream",
        STREAMS + "kstream.internals.InternalStreamsBuilder", STREAMS + "kstream.internals.graph.GraphNode",
        STREAMS + "kstream.internals.MaterializedInternal", STREAMS + "kstream.internals.KTableValueGetter",
        STREAMS + "kstream.internals.KTableValueGetterSupplier");
    private static final List<String> NOT_OF_PROGRAMS = List.of("java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.", "kotlin.",
        "org.apache.kafka.", "org.apache.avro.", "org.slf4j.", "org.rocksdb.", "org.springframework.", "io.micrometer.");
    private static final List<String> LEFT_OUT = List.of(STREAMS + "processor.StateStore", STREAMS + "state.StoreBuilder",
        STREAMS + "processor.ProcessorContext", "org.apache.kafka.common.serialization.Serde",
        "org.apache.kafka.common.serialization.Serializer", "org.apache.kafka.common.serialization.Deserializer", "org.slf4j.Logger");
    private static final Set<String> VALUES = Set.of("java.util.UUID", "java.util.BitSet", "java.util.Optional", "java.util.OptionalLong",
        "java.util.OptionalInt", "java.util.OptionalDouble");

    /** Stands for an object of which is known only which one it is. */
    private static final class Other {
        private final int identity;

        Other(Object value) {
            identity = System.identityHashCode(value);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Other && ((Other) other).identity == identity;
        }

        @Override
        public int hashCode() {
            return identity;
        }
    }

    private final Map<String, Object> found = new TreeMap<>();
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Set<Class<?>> classes = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Map<Class<?>, Integer> counts = new HashMap<>();
    private String home;

    private KeptFields() {}

    /** @param nodes of a ProcessorTopology; or their factories, of a topology whose processors come and go */
    static KeptFields of(Collection<?> nodes) {
        KeptFields fields = new KeptFields();
        for (Object node : nodes) {
            for (String name : OF_NODES) {
                Versions.fieldIfAny(node.getClass(), name).ifPresent(field -> fields.look(read(field, node), 0));
            }
        }
        return fields;
    }

    /** The fields that hold something else now than they did before, such as com.acme.Sum.total. */
    Set<String> since(KeptFields before) {
        Set<String> changed = new TreeSet<>();
        found.forEach((place, value) -> {
            if (before.found.containsKey(place)) {
                Object was = before.found.get(place);
                boolean madeWhenNeeded = was == null && value instanceof Other;
                if (!madeWhenNeeded && !Objects.equals(was, value)) {
                    changed.add(place.substring(0, place.lastIndexOf('#')).replaceFirst("\\$\\$Lambda[^.]*", ""));
                }
            }
        });
        return changed;
    }

    /** Goes through what the library holds until it finds what is the program's. */
    private void look(Object value, int depth) {
        if (value == null || depth > DEPTH || seen.size() > MOST_OBJECTS || !seen.add(value)) {
            return;
        }
        Class<?> type = value.getClass();
        if (isLibrary(type)) {
            if (HOLDING.stream().anyMatch(type.getName()::startsWith) && PLUMBING.stream().noneMatch(name -> is(type, name))) {
                for (Class<?> at = type; at != null && at != Object.class; at = at.getSuperclass()) {
                    for (Field field : declared(at)) {
                        if (!Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive()) {
                            look(read(field, value), depth + 1);
                        }
                    }
                }
            }
        } else if (isProgram(type)) {
            String before = home;
            home = home(type);
            fields(value, type, depth);
            home = before;
        }
    }

    /** Notes the fields of one of the program's objects. */
    private void fields(Object value, Class<?> type, int depth) {
        int number = counts.merge(type, 1, Integer::sum);
        for (Class<?> at = type; isProgram(at); at = at.getSuperclass()) {
            for (Field field : declared(at)) {
                boolean fixed = Modifier.isStatic(field.getModifiers());
                if (!fixed && !field.getName().startsWith("bitmap$")) { // by which Scala knows what lazy values it has made
                    note(at, field, number, value, depth);
                }
            }
            statics(at, depth);
        }
    }

    private void statics(Class<?> type, int depth) {
        Class<?> holder = holder(type);
        if (!classes.add(holder)) {
            return;
        }
        for (Field field : declared(holder)) {
            if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                note(holder, field, 0, null, depth);
            }
        }
    }

    private void note(Class<?> type, Field field, int number, Object owner, int depth) {
        Object value = read(field, owner);
        found.put(type.getName() + "." + field.getName() + "#" + number, content(value, depth + 1));
    }

    /** The class whose code a lambda is. */
    private static Class<?> holder(Class<?> type) {
        int lambda = type.getName().indexOf("$$Lambda");
        if (lambda < 0) {
            return type;
        }
        try {
            return Class.forName(type.getName().substring(0, lambda), false, type.getClassLoader());
        } catch (ClassNotFoundException | LinkageError none) {
            return type;
        }
    }

    /** Something that equals what this gave before as long as the value holds the same. */
    private Object content(Object value, int depth) {
        if (value == null) {
            return null;
        }
        Class<?> type = value.getClass();
        try {
            if (type.isArray()) {
                return elements(type, value, depth);
            } else if (value instanceof Collection || value instanceof Map) {
                return held(type, value, depth);
            } else if (value instanceof AtomicReference) {
                return List.of(type, Objects.requireNonNullElse(content(((AtomicReference<?>) value).get(), depth + 1), ""));
            } else if (isValue(type)) {
                return value instanceof Date ? ((Date) value).getTime() : value.toString();
            } else if (type.getName().startsWith("scala.collection.mutable.") || type.getName().startsWith("scala.collection.concurrent.")) {
                return value.hashCode();
            }
        } catch (RuntimeException unreadable) { // as a collection that another thread changes
            return type;
        }
        if (isAtHome(type)) {
            if (depth <= DEPTH && seen.size() <= MOST_OBJECTS && seen.add(value)) {
                fields(value, type, depth);
            }
            return type;
        }
        if (isLibrary(type)) { // such as what it made of the program's functions
            look(value, depth + 1);
        }
        return new Other(value);
    }

    private Object elements(Class<?> type, Object array, int depth) {
        int length = Array.getLength(array);
        int hash = length;
        for (int at = 0; at < length && (at < MOST_ELEMENTS || type.getComponentType().isPrimitive()); at++) {
            hash = 31 * hash + Objects.hashCode(element(Array.get(array, at), depth));
        }
        return List.of(type, hash);
    }

    /** The number of elements, and what the first of them are. */
    private Object held(Class<?> type, Object value, int depth) {
        Collection<?> all = value instanceof Map ? ((Map<?, ?>) value).entrySet() : (Collection<?>) value;
        int hash = 0;
        int count = 0;
        for (Object each : type.getName().startsWith("java.") ? all : List.of()) { // others may change when they are read
            if (count++ == MOST_ELEMENTS) {
                break;
            }
            Map.Entry<?, ?> entry = each instanceof Map.Entry ? (Map.Entry<?, ?>) each : null;
            hash += entry == null
                    ? Objects.hashCode(element(each, depth))
                    : 31 * Objects.hashCode(element(entry.getKey(), depth)) + Objects.hashCode(element(entry.getValue(), depth));
        }
        return List.of(all.size(), hash);
    }

    /** What an element is: of the program's objects all that they hold. */
    private Object element(Object value, int depth) {
        if (value == null || !isAtHome(value.getClass()) || isValue(value.getClass())) {
            return content(value, depth + 1);
        }
        if (depth > DEPTH || seen.size() > MOST_OBJECTS || !seen.add(value)) {
            return value.getClass();
        }
        int hash = 0;
        for (Class<?> at = value.getClass(); isProgram(at); at = at.getSuperclass()) {
            for (Field field : declared(at)) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    hash = 31 * hash + Objects.hashCode(element(read(field, value), depth + 1));
                }
            }
        }
        return hash;
    }

    private static boolean isValue(Class<?> type) {
        String name = type.getName();
        boolean ofLanguage = CharSequence.class.isAssignableFrom(type) || Number.class.isAssignableFrom(type) || type == Boolean.class
                || type == Character.class;
        return type.isEnum() || name.startsWith("java.lang.") && ofLanguage || name.startsWith("java.math.") || name.startsWith("java.time.")
                || name.startsWith("java.util.concurrent.atomic.") || Date.class.isAssignableFrom(type) || VALUES.contains(name);
    }

    /** Whether a class is Kafka Streams': programs may be in packages of that name, as Apache's examples are. */
    private static boolean isLibrary(Class<?> type) {
        return type.getName().startsWith(STREAMS)
            && (type.getName().startsWith(STREAMS + "scala.") || Objects.equals(place(type), place(org.apache.kafka.streams.KafkaStreams.class)));
    }

    private static boolean isProgram(Class<?> type) {
        return type != null && !type.isArray() && !isLibrary(type) && LEFT_OUT.stream().noneMatch(name -> is(type, name))
            && (type.getName().startsWith(STREAMS) || NOT_OF_PROGRAMS.stream().noneMatch(type.getName()::startsWith));
    }

    /** Whether an object is of the program as the one is that holds it, and not of a library of its. */
    private boolean isAtHome(Class<?> type) {
        return isProgram(type) && home(type).equals(home);
    }

    /** The first two parts of a package, such as com.acme. */
    private static String home(Class<?> type) {
        String[] parts = type.getName().split("\\.");
        return parts.length < 3 ? String.join(".", List.of(parts).subList(0, parts.length - 1)) : parts[0] + "." + parts[1];
    }

    private static boolean is(Class<?> type, String name) {
        if (type == null) {
            return false;
        }
        if (type.getName().equals(name) || is(type.getSuperclass(), name)) {
            return true;
        }
        for (Class<?> each : type.getInterfaces()) {
            if (is(each, name)) {
                return true;
            }
        }
        return false;
    }

    private static URL place(Class<?> type) {
        CodeSource source = type.getProtectionDomain().getCodeSource();
        return source == null ? null : source.getLocation();
    }

    /** The fields of a class; none where the class path lacks the class of one. */
    private static Field[] declared(Class<?> type) {
        try {
            return type.getDeclaredFields();
        } catch (LinkageError lacking) {
            return new Field[0];
        }
    }

    /** What a field holds; null where that cannot be read. */
    private static Object read(Field field, Object owner) {
        try {
            field.setAccessible(true);
            return field.get(owner);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError unreadable) {
            return null;
        }
    }
}
