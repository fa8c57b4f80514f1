package kops.agent;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;

/**
 * What a program may depend on besides its input and its code: charset, locale, zone, options of its JVM, and what it reads by name.
 *
 * <p>Values are kept as digests: the first 16 bits of a SHA-256 over the application, the kind, the name and the value. Who tries passwords
 * finds that one in 65,536 fits, and cannot tell which of them it is; another capture of the application tells no more. What has the name of a
 * secret is only said to be set. Another value has the same digest once in 65,536 times.
 */
final class Surroundings {
    private static final String SET = "set";
    private static final String ABSENT = "absent";
    private static final List<String> OF_LOCALE = List.of("user.language", "user.script", "user.country", "user.variant");
    private static final List<String> OF_MACHINE = List.of("/proc/", "/sys/", "/dev/");

    private static final Map<String, String> INITIAL = new TreeMap<>();
    private static final Map<String, String> DIGESTS_OF_FILES = new ConcurrentHashMap<>();
    private static Instrumentation instrumentation;
    private static Settings secrets;
    private static String place;
    private static String application;
    private static Set<String> options;
    private static String unseen;

    private Surroundings() {}

    /** Begin to note what is read. @param rewriter of those classes of the JDK that read variables and open files */
    static void watch(final Instrumentation given, final Session session, final UnaryOperator<byte[]> rewriter) {
        instrumentation = given;
        secrets = new Settings(session);
        place = session.setting("place");
        System.getProperties().forEach((name, value) -> INITIAL.put(String.valueOf(name), String.valueOf(value)));
        RecordedProperties.install();
        try {
            Recording.start(given, rewriter);
        } catch (final Throwable error) { // of a JVM that rewrites no classes of its own
            unseen = String.valueOf(error);
        }
    }

    /** Why reads of variables and files could not be seen; null: they were. */
    static String unseen() {
        return unseen == null ? Recording.failure() : unseen;
    }

    static Map<String, Object> facts(final String id) {
        of(id);
        final Map<String, Object> facts = effective();
        facts.put("options", secrets.withoutSecrets(new ArrayList<>(options())));
        final Map<String, Object> variables = new TreeMap<>();
        System.getenv().forEach((name, value) -> variables.put(name, digest("variable", name, value)));
        facts.put("variables", variables);
        final Map<String, Object> properties = new TreeMap<>();
        INITIAL.forEach((name, value) -> properties.put(name, digest("property", name, value)));
        facts.put("properties", properties);
        facts.put("read", read());
        return facts;
    }

    /** Name the application that is run. */
    static void of(final String name) {
        application = name;
    }

    /** What was read until now, and of which value; and charset, locale and zone. */
    static Map<String, Object> now() {
        final Map<String, Object> facts = effective();
        facts.put("read", read());
        facts.put("unseen", unseen());
        return facts;
    }

    private static Map<String, Object> effective() {
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("charset", Charset.defaultCharset().name());
        facts.put("zone", zone());
        facts.put("java", INITIAL.get("java.specification.version"));
        final Map<String, Object> locale = new TreeMap<>();
        for (final String name : OF_LOCALE) {
            locale.put(name, INITIAL.getOrDefault(name, ""));
            for (final String more : List.of(name + ".display", name + ".format")) {
                if (INITIAL.containsKey(more)) locale.put(more, INITIAL.get(more));
            }
        }
        facts.put("locale", locale);
        return facts;
    }

    /**
     * The zone that the JVM began with. A program may set another one, by TimeZone.setDefault or by the property before it first uses a zone, and
     * does so again when it is started again: so the default zone is not asked for, which would settle it.
     */
    private static String zone() {
        final String given = INITIAL.getOrDefault("user.timezone", "");
        if (!given.isEmpty()) return given;
        try {
            final Object found = ofJdk("java.util.TimeZone", "getSystemTimeZoneID", INITIAL.get("java.home"));
            return found == null ? "GMT" : (String) found;
        } catch (final ReflectiveOperationException | RuntimeException otherJdk) {
            return TimeZone.getDefault().getID();
        }
    }

    /** Call a static method of the JDK that is not public. */
    private static Object ofJdk(final String type, final String name, final String... given) throws ReflectiveOperationException {
        final Class<?> found = Class.forName(type);
        final Map<String, Set<Module>> opened = Map.of(found.getPackageName(), Set.of(Surroundings.class.getModule()));
        instrumentation.redefineModule(found.getModule(), Set.of(), Map.of(), opened, Set.of(), Map.of());
        final Method method = found.getDeclaredMethod(name, Collections.nCopies(given.length, String.class).toArray(new Class<?>[0]));
        method.setAccessible(true);
        return method.invoke(null, (Object[]) given);
    }

    /** The options of the JVM, wherever they come from, without kops' own agent. */
    private static Set<String> options() {
        if (options == null) {
            final Set<String> found = new TreeSet<>(arguments());
            found.removeIf(each -> each.startsWith("-javaagent:") && each.contains("kops-agent.jar="));
            options = found;
        }
        return options;
    }

    /** As RuntimeMXBean.getInputArguments has them, for which the JVM would load its management. */
    private static List<String> arguments() {
        try {
            return List.of((String[]) ofJdk("jdk.internal.misc.VM", "getRuntimeArguments"));
        } catch (final ReflectiveOperationException | RuntimeException otherJdk) {
            return ManagementFactory.getRuntimeMXBean().getInputArguments();
        }
    }

    private static List<Map<String, Object>> read() {
        final List<Map<String, Object>> found = new ArrayList<>();
        final Map<String, String> variables = System.getenv();
        Reads.sorted(Reads.VARIABLES).forEach((name, by) -> found.add(entry("variable", name, variables.get(name), by, "name")));
        Reads.sorted(Reads.COPIED_VARIABLES).forEach((name, by) -> {
            if (!Reads.VARIABLES.containsKey(name)) found.add(entry("variable", name, variables.get(name), by, "copy"));
        });
        Reads.sorted(Reads.PROPERTIES).forEach((name, by) -> found.add(entry("property", name, INITIAL.get(name), by, "name")));
        Reads.sorted(Reads.OTHER_PROPERTIES).forEach((name, by) -> {
            final boolean given = options().stream().anyMatch(each -> each.equals("-D" + name) || each.startsWith("-D" + name + "="));
            if (given && !Reads.PROPERTIES.containsKey(name)) found.add(entry("property", name, INITIAL.get(name), by, "copy"));
        });
        if (Reads.HOST.get() != null) found.add(entry("host", "", hostName(), Reads.HOST.get(), "name"));
        final List<Path> classes = classPath();
        Reads.sorted(Reads.FILES).forEach((name, by) -> {
            final Path path = Paths.get(name).toAbsolutePath().normalize();
            if (OF_MACHINE.stream().anyMatch(path.toString()::startsWith) || classes.stream().anyMatch(path::startsWith)) return;
            final Map<String, Object> entry = entry("file", asCaptured(path.toString()), null, by, "name");
            final String digest = DIGESTS_OF_FILES.computeIfAbsent(path.toString(), Surroundings::digestOfFile);
            entry.put("digest", digest.equals(ABSENT) ? null : digest);
            found.add(entry);
        });
        return found;
    }

    private static String hostName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (final UnknownHostException none) {
            return null;
        }
    }

    /** Where classes come from, of which digests are kept otherwise: the class path, and the JDK. */
    private static List<Path> classPath() {
        final List<Path> found = new ArrayList<>(ClassPath.noted());
        found.add(Paths.get(INITIAL.get("java.home")));
        return found;
    }

    private static Map<String, Object> entry(final String kind, final String name, final String value, final String by, final String how) {
        final Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("kind", kind);
        entry.put("name", name);
        entry.put("digest", value == null ? null : digest(kind, name, value));
        entry.put("by", by);
        entry.put("how", how);
        return entry;
    }

    private static String digest(final String kind, final String name, final String value) {
        if (secrets.isSecret(name)) return SET;
        return digest(kind, name, digest -> digest.update(asCaptured(value).getBytes(StandardCharsets.UTF_8)));
    }

    /** A text with paths as they were: on another machine kops puts the program's files below a folder, and that into its command. */
    private static String asCaptured(final String text) {
        return place == null ? text : text.replace(place, "");
    }

    private interface Content {
        void give(MessageDigest digest) throws IOException;
    }

    private static String digest(final String kind, final String name, final Content content) {
        try {
            final MessageDigest digest = ClassPath.sha256();
            for (final String each : Arrays.asList(application, kind, name)) digest.update((each + "\0").getBytes(StandardCharsets.UTF_8));
            content.give(digest);
            final byte[] found = digest.digest();
            return String.format("%02x%02x", found[0], found[1]);
        } catch (final IOException unreadable) {
            return "unreadable";
        }
    }

    private static String digestOfFile(final String path) {
        final Path file = Paths.get(path);
        if (!Files.isRegularFile(file)) return ABSENT;
        return digest("file", asCaptured(path), digest -> {
            final byte[] buffer = new byte[1 << 16];
            try (InputStream stream = Files.newInputStream(file)) {
                for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) digest.update(buffer, 0, count);
            }
        });
    }
}
