package kops.agent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;

/** What a program's classes come from, with digests by which another build is noticed. */
final class ClassPath {
    private static volatile Set<Path> noted = Set.of();

    private ClassPath() {}

    /** The files and folders of which facts() has last given digests. */
    static Set<Path> noted() {
        return noted;
    }

    /**
     * The class path of the JVM, and what the class loaders down to the program's name besides.
     *
     * An entry's digest is the SHA-256 of a file, or of a folder's names and contents; that of all is over the entries' names and
     * digests in their order, so it is the same wherever the files are.
     *
     * @param withoutPaths receives the classes of those class loaders that do not say where their classes are
     */
    static Map<String, Object> facts(final Consumer<String> withoutPaths, final ClassLoader... loaders) throws IOException {
        final Set<Path> paths = new LinkedHashSet<>();
        for (final String property : List.of("java.class.path", "jdk.module.path")) {
            for (final String each : System.getProperty(property, "").split(File.pathSeparator)) {
                if (!each.isEmpty()) add(Paths.get(each).toAbsolutePath().normalize(), paths);
            }
        }
        final Set<ClassLoader> seen = new LinkedHashSet<>();
        for (final ClassLoader loader : loaders) {
            for (ClassLoader each = loader; each != null; each = each.getParent()) {
                if (!seen.add(each)) continue;
                final Collection<Path> found = of(each);
                if (found == null) withoutPaths.accept(each.getClass().getName());
                else for (final Path path : found) add(path, paths);
            }
        }
        noted = paths;
        final List<Map<String, Object>> entries = new ArrayList<>();
        final MessageDigest all = sha256();
        for (final Path path : paths) {
            final Map<String, Object> entry = new LinkedHashMap<>();
            entry.put("path", path.toString());
            entry.put("kind", Files.isDirectory(path) ? "folder" : Files.exists(path) ? "jar" : "absent");
            entry.put("sha256", Files.isDirectory(path) ? folder(path) : Files.exists(path) ? stream(Files.newInputStream(path)) : null);
            final List<Map<String, Object>> inner = Files.isRegularFile(path) ? nested(path) : List.of();
            if (!inner.isEmpty()) entry.put("nested", inner);
            entries.add(entry);
            all.update((path.getFileName() + "\0" + entry.get("sha256") + "\n").getBytes("UTF-8"));
        }
        final Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("entries", entries);
        facts.put("sha256", hexadecimal(all));
        return facts;
    }

    /** Add a file, and those that it names itself if it is a jar: Class-Path in its manifest. */
    private static void add(final Path path, final Set<Path> paths) throws IOException {
        if (!paths.add(path) || !Files.isRegularFile(path)) return;
        try (JarFile jar = new JarFile(path.toFile(), false)) {
            final Manifest manifest = jar.getManifest();
            final String named = manifest == null ? null : manifest.getMainAttributes().getValue(Attributes.Name.CLASS_PATH);
            if (named == null) return;
            for (final String each : named.trim().split("\\s+")) {
                final Path found = each.isEmpty() ? null : file(new URL(path.toUri().toURL(), each));
                if (found != null && Files.exists(found)) add(found, paths); // the JVM passes over those that are not there
            }
        } catch (final ZipException error) {
            return; // no jar
        }
    }

    /** The files and folders from which a class loader takes classes, besides the class path; null: it does not say. */
    private static Collection<Path> of(final ClassLoader loader) {
        final Collection<Path> found = new LinkedHashSet<>();
        if (loader instanceof URLClassLoader) {
            for (final URL url : ((URLClassLoader) loader).getURLs()) {
                final Path path = file(url);
                if (path != null) found.add(path);
            }
            return found;
        }
        if (loader.getClass().getClassLoader() == null) return found; // the JVM's own
        final Object resources = Read.fieldOrNull(loader, "resourceDirectoryMap"); // io.quarkus.bootstrap.runner.RunnerClassLoader
        if (!(resources instanceof Map)) return null;
        for (final Object each : ((Map<?, ?>) resources).values()) {
            for (final Object resource : (Object[]) each) {
                final Object path = Read.fieldOrNull(resource, "jarPath");
                if (path instanceof Path) found.add(((Path) path).toAbsolutePath().normalize());
            }
        }
        return found.isEmpty() ? null : new TreeSet<>(found);
    }

    /** The file of an address such as file:/a.jar, jar:file:/a.jar!/BOOT-INF/lib/b.jar!/ or jar:nested:/a.jar/!BOOT-INF/lib/b.jar!/. */
    private static Path file(final URL url) {
        String text = url.toString();
        if (text.startsWith("jar:")) text = text.substring(4);
        if (text.startsWith("nested:")) text = "file:" + text.substring(7);
        final int end = text.indexOf('!');
        if (end >= 0) text = text.substring(0, end);
        if (!text.startsWith("file:")) return null;
        if (text.endsWith("/") && text.endsWith(".jar/")) text = text.substring(0, text.length() - 1);
        return Paths.get(URI.create(text)).toAbsolutePath().normalize();
    }

    /** The jars in a jar, as Spring Boot packs them. */
    private static List<Map<String, Object>> nested(final Path jar) throws IOException {
        final List<Map<String, Object>> found = new ArrayList<>();
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            for (final ZipEntry each : zip.stream().filter(entry -> entry.getName().endsWith(".jar")).collect(Collectors.toList())) {
                final Map<String, Object> entry = new LinkedHashMap<>();
                entry.put("name", each.getName());
                entry.put("sha256", stream(zip.getInputStream(each)));
                found.add(entry);
            }
        } catch (final ZipException error) {
            return List.of(); // the JVM passes such a file over too
        }
        return found;
    }

    private static String folder(final Path folder) throws IOException {
        final MessageDigest digest = sha256();
        final List<Path> files;
        try (Stream<Path> found = Files.walk(folder)) {
            files = found.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
        }
        for (final Path file : files) {
            digest.update((folder.relativize(file) + "\0" + stream(Files.newInputStream(file)) + "\n").getBytes("UTF-8"));
        }
        return hexadecimal(digest);
    }

    private static String stream(final InputStream opened) throws IOException {
        final MessageDigest digest = sha256();
        try (InputStream stream = opened) {
            final byte[] buffer = new byte[1 << 16];
            for (int length = stream.read(buffer); length >= 0; length = stream.read(buffer)) digest.update(buffer, 0, length);
        }
        return hexadecimal(digest);
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (final NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String hexadecimal(final MessageDigest digest) {
        final StringBuilder text = new StringBuilder();
        for (final byte each : digest.digest()) text.append(String.format("%02x", each));
        return text.toString();
    }
}
