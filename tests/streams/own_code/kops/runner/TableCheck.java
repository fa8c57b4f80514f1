package kops.runner;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** Does the same to a Table and to a HashMap, by chance, and compares them now and then: says "same", or throws. */
public final class TableCheck {
    private static final int OPERATIONS = 150_000;

    private TableCheck() {}

    public static void main(String[] arguments) {
        for (int seed = 0; seed < 4; seed++) {
            check(new Random(seed), seed % 2 == 0 ? 300 : 30_000, seed < 2 ? 40 : 3_000);
        }
        large();
        hashes();
        System.out.println("same");
    }

    /** Keys that are alike have other hashes: of this many numbers chance would let some ten be the same. */
    private static void hashes() {
        Set<Integer> found = new HashSet<>();
        for (int number = -OPERATIONS; number < OPERATIONS; number++) {
            found.add(Table.hash(ByteBuffer.allocate(8).putLong(number).array()));
        }
        if (found.size() < 2 * OPERATIONS - 100) {
            throw new IllegalStateException(found.size() + " hashes of " + 2 * OPERATIONS + " keys");
        }
    }

    private static void check(Random random, int keys, int longest) {
        Table table = new Table(2);
        Map<String, Entry> expected = new HashMap<>();
        for (int count = 0; count < OPERATIONS / (longest > 1000 ? 8 : 1); count++) {
            String name = random.nextInt(1000) == 0 ? null : "k" + random.nextInt(keys);
            byte[] key = name == null ? null : name.getBytes(StandardCharsets.UTF_8);
            int what = random.nextInt(10);
            if (what == 0) {
                table.remove(key);
                expected.remove(name);
            } else if (what < 4) {
                same(table, key, expected.get(name));
            } else {
                Entry entry = expected.computeIfAbsent(name, none -> new Entry());
                entry.value = random.nextInt(20) == 0 ? null : bytes(random, longest);
                entry.more = random.nextInt(4) == 0 ? bytes(random, 20) : new byte[0];
                entry.number = count;
                byte[] value = entry.value == null ? null : entry.value.clone();
                long place = table.put(key, value, entry.more.clone());
                if (table.number(place, 0) != entry.before) {
                    throw new IllegalStateException("a number is lost");
                }
                entry.before = count + 7L;
                table.number(place, 0, entry.before);
                table.number(place, 1, entry.number);
                if (value != null) {
                    Arrays.fill(value, (byte) 1); // it is its maker's
                }
            }
            if (count % 25_000 == 0) {
                all(table, expected);
            }
        }
        all(table, expected);
        table.clear();
        all(table, Map.of());
    }

    /** An entry that is larger than a page, between others. */
    private static void large() {
        Table table = new Table(0);
        byte[] value = new byte[9 << 20];
        value[value.length - 1] = 5;
        table.put(new byte[] {1}, new byte[] {2}, new byte[0]);
        table.put(new byte[] {2}, value, new byte[0]);
        table.put(new byte[] {3}, new byte[] {4}, new byte[0]);
        for (int key = 1; key <= 3; key++) {
            byte[] found = table.value(table.find(new byte[] {(byte) key}));
            if (found[found.length - 1] != new byte[] {2, 5, 4}[key - 1]) {
                throw new IllegalStateException("a large value is lost");
            }
        }
    }

    private static byte[] bytes(Random random, int longest) {
        byte[] bytes = new byte[random.nextInt(longest)];
        random.nextBytes(bytes);
        return bytes;
    }

    private static void all(Table table, Map<String, Entry> expected) {
        List<String> found = new ArrayList<>();
        table.forEach(place -> found.add(table.key(place) == null ? null : new String(table.key(place), StandardCharsets.UTF_8)));
        if (found.size() != expected.size() || table.size() != expected.size() || !expected.keySet().containsAll(found)) {
            throw new IllegalStateException(found.size() + " keys and " + table.size() + " where there are " + expected.size());
        }
        expected.forEach((name, entry) -> same(table, name == null ? null : name.getBytes(StandardCharsets.UTF_8), entry));
    }

    private static void same(Table table, byte[] key, Entry expected) {
        long place = table.find(key);
        if (expected == null ? place != Table.NONE : place == Table.NONE) {
            throw new IllegalStateException("a key is there or not");
        }
        if (expected != null
                && !(Arrays.equals(table.value(place), expected.value)
                        && Arrays.equals(table.more(place, expected.more.length), expected.more)
                        && Arrays.equals(table.key(place), key)
                        && table.number(place, 1) == expected.number)) {
            throw new IllegalStateException("a value differs");
        }
    }

    private static final class Entry {
        private byte[] value;
        private byte[] more;
        private long number;
        private long before;
    }
}
