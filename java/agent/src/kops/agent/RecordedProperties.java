package kops.agent;

import java.util.Collection;
import java.util.Enumeration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.BiConsumer;

/** The system properties: notes which of them are asked for. Those of Long.getLong and the like come here too. */
final class RecordedProperties extends Properties {
    private static final long serialVersionUID = 1;

    private RecordedProperties(final Properties before) {
        before.forEach(super::put);
    }

    /** Take the place of the JVM's own. */
    static void install() {
        System.setProperties(new RecordedProperties(System.getProperties()));
    }

    @Override
    public String getProperty(final String name) {
        Reads.property(name);
        return super.getProperty(name);
    }

    @Override
    public synchronized Object get(final Object name) {
        Reads.property(name);
        return super.get(name);
    }

    @Override
    public synchronized Object getOrDefault(final Object name, final Object otherwise) {
        Reads.property(name);
        return super.getOrDefault(name, otherwise);
    }

    @Override
    public synchronized boolean containsKey(final Object name) {
        Reads.property(name);
        return super.containsKey(name);
    }

    @Override
    public synchronized Object putIfAbsent(final Object name, final Object value) {
        Reads.property(name);
        return super.putIfAbsent(name, value);
    }

    @Override
    public synchronized Object put(final Object name, final Object value) {
        Reads.ownProperty(name);
        return super.put(name, value);
    }

    @Override
    public synchronized Object remove(final Object name) {
        Reads.ownProperty(name);
        return super.remove(name);
    }

    @Override
    public Set<Map.Entry<Object, Object>> entrySet() {
        all();
        return super.entrySet();
    }

    @Override
    public Collection<Object> values() {
        all();
        return super.values();
    }

    @Override
    public Enumeration<Object> elements() {
        all();
        return super.elements();
    }

    @Override
    public synchronized void forEach(final BiConsumer<? super Object, ? super Object> action) {
        all();
        super.forEach(action);
    }

    private void all() {
        super.keySet().forEach(Reads::copiedProperty);
    }
}
