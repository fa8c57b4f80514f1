package kops.runner;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * Values by keys, both of bytes, in no order, and some numbers beside each: a hash table that copies what it is given into large arrays.
 *
 * <p>Millions of small objects cost more than what is done with them: each is another miss of the processor's cache, and what is put for
 * a key that is there already is new garbage that old objects point to. Here a key, its numbers and its value stand beside each other,
 * and a value that fits takes the place of the one before. What no longer fits leaves a gap; when the gaps are more than the rest, all
 * is copied once more without them.
 *
 * <p>A place is where an entry begins; it holds until the next entry is added, put or removed.
 */
final class Table {
    static final int NONE = -1;

    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final int SHIFT = 22;
    private static final int PAGE = 1 << SHIFT;
    private static final int UNIT = 8;
    private static final long FREE = 0;
    private static final long REMOVED = 1;
    private static final int FIRST_PLACE = 2 * UNIT; // so that no slot of an entry is FREE or REMOVED
    private static final long PLACES = 0xFFFFFFFFL;

    // An entry: the lengths of the key and of the value (-1: null), the room for the value, the hash, the numbers, the key, the value.
    private static final int VALUE_LENGTH = 4;
    private static final int ROOM = 8;
    private static final int HASH = 12;
    private static final int NUMBERS = 16;

    private final int numbers;
    private final int keyAt;
    private List<byte[]> pages;
    private long[] slots; // the hash, and the place in units
    private int used;
    private int size;
    private byte[] page;
    private int end;
    private long paged;
    private long taken;
    private long gaps;
    private long last = NONE;

    /** @param numbers how many there are beside each value */
    Table(int numbers) {
        this.numbers = numbers;
        this.keyAt = NUMBERS + 8 * numbers;
        clear();
    }

    void clear() {
        pages = new ArrayList<>();
        paged = 0;
        slots = new long[1 << 10];
        used = 0;
        size = 0;
        gaps = 0;
        taken = 0;
        last = NONE;
        newPage(PAGE >> 4); // most tables stay small
        end = FIRST_PLACE;
    }

    int size() {
        return size;
    }

    /** How much memory it takes. */
    long bytes() {
        return paged + 8L * slots.length;
    }

    /** The place of a key; NONE if it is not there. */
    long find(byte[] key) {
        if (last != NONE && isAt(last, key)) { // a get is followed by a put
            return last;
        }
        int hash = hash(key);
        for (int at = slotOf(hash); slots[at] != FREE; at = at + 1 & slots.length - 1) {
            if (slots[at] != REMOVED && (int) (slots[at] >>> 32) == hash) {
                long place = (slots[at] & PLACES) * UNIT;
                if (isAt(place, key)) {
                    last = place;
                    return place;
                }
            }
        }
        return NONE;
    }

    /** Puts a value of two parts, one after the other, and returns the place; the numbers are those of before, or 0. */
    long put(byte[] key, byte[] value, byte[] more) {
        int length = value == null ? 0 : value.length;
        int all = Math.addExact(length, more.length);
        long place = find(key);
        if (place == NONE || (int) INT.get(pageOf(place), offsetOf(place) + ROOM) < all) {
            place = place == NONE ? add(key, all) : move(place, key, all);
        }
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        INT.set(data, at + VALUE_LENGTH, value == null ? -1 : length);
        int valueAt = at + keyAt + keyLength(data, at);
        if (length > 0) {
            System.arraycopy(value, 0, data, valueAt, length);
        }
        if (more.length > 0) {
            System.arraycopy(more, 0, data, valueAt + length, more.length);
        }
        return place;
    }

    /** Removes a key, if it is there. */
    void remove(byte[] key) {
        long place = find(key);
        if (place == NONE) {
            return;
        }
        slots[slotAt(place)] = REMOVED;
        gaps += lengthOf(place);
        size--;
        last = NONE;
    }

    byte[] key(long place) {
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        int length = (int) INT.get(data, at);
        return length < 0 ? null : Arrays.copyOfRange(data, at + keyAt, at + keyAt + length);
    }

    /** The first part of a value. */
    byte[] value(long place) {
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        int length = (int) INT.get(data, at + VALUE_LENGTH);
        int from = at + keyAt + keyLength(data, at);
        return length < 0 ? null : Arrays.copyOfRange(data, from, from + length);
    }

    /** The second part of a value. */
    byte[] more(long place, int length) {
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        int from = at + keyAt + keyLength(data, at) + Math.max(0, (int) INT.get(data, at + VALUE_LENGTH));
        return Arrays.copyOfRange(data, from, from + length);
    }

    long number(long place, int which) {
        return (long) LONG.get(pageOf(place), offsetOf(place) + NUMBERS + 8 * which);
    }

    void number(long place, int which, long number) {
        LONG.set(pageOf(place), offsetOf(place) + NUMBERS + 8 * which, number);
    }

    /** Gives the places of all entries, in no order. */
    void forEach(LongConsumer action) {
        for (long slot : slots) {
            if (slot != FREE && slot != REMOVED) {
                action.accept((slot & PLACES) * UNIT);
            }
        }
    }

    /**
     * All bits of a key go into all bits of its hash: Arrays.hashCode gives a million numbers in a row, of eight bytes each, thirty thousand
     * values, and each find then goes through all entries of one.
     */
    static int hash(byte[] key) {
        if (key == null) {
            return 0;
        }
        long hash = key.length;
        int at = 0;
        for (; at <= key.length - 8; at += 8) {
            hash = mixed(hash ^ (long) LONG.get(key, at));
        }
        long rest = 0;
        for (; at < key.length; at++) {
            rest = rest << 8 | key[at] & 0xFF;
        }
        return (int) mixed(hash ^ rest);
    }

    /** The last step of MurmurHash3. */
    private static long mixed(long bits) {
        long one = (bits ^ bits >>> 33) * 0xFF51AFD7ED558CCDL;
        long two = (one ^ one >>> 33) * 0xC4CEB9FE1A85EC53L;
        return two ^ two >>> 33;
    }

    private int slotOf(int hash) {
        return hash & slots.length - 1;
    }

    private byte[] pageOf(long place) {
        return pages.get((int) (place >>> SHIFT));
    }

    private static int offsetOf(long place) {
        return (int) place & PAGE - 1;
    }

    private static int keyLength(byte[] data, int at) {
        return Math.max(0, (int) INT.get(data, at));
    }

    private boolean isAt(long place, byte[] key) {
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        int length = (int) INT.get(data, at);
        if (key == null || length < 0) {
            return key == null && length < 0;
        }
        return Arrays.equals(data, at + keyAt, at + keyAt + length, key, 0, key.length);
    }

    private int slotAt(long place) {
        int at = slotOf((int) INT.get(pageOf(place), offsetOf(place) + HASH));
        while (slots[at] == FREE || slots[at] == REMOVED || (slots[at] & PLACES) * UNIT != place) {
            at = at + 1 & slots.length - 1;
        }
        return at;
    }

    private int lengthOf(long place) {
        byte[] data = pageOf(place);
        int at = offsetOf(place);
        return rounded(keyAt + keyLength(data, at) + (int) INT.get(data, at + ROOM));
    }

    private static int rounded(int length) {
        return Math.addExact(length, UNIT - 1) & -UNIT;
    }

    private long add(byte[] key, int room) {
        if (4L * (used + 1) > 3L * slots.length) {
            rehash();
        }
        if (isLeaky()) {
            withoutGaps(NONE);
        }
        int hash = hash(key);
        long place = allocated(key, hash, room);
        enter(hash, place);
        size++;
        return place;
    }

    /** Gives a value more room than it needs now: one that grows does so again. */
    private long move(long place, byte[] key, int length) {
        int slot = slotAt(place);
        byte[] before = pageOf(place);
        int from = offsetOf(place) + NUMBERS;
        gaps += lengthOf(place);
        int hash = (int) (slots[slot] >>> 32);
        long to = allocated(key, hash, Math.addExact(length, length >> 2));
        System.arraycopy(before, from, pageOf(to), offsetOf(to) + NUMBERS, 8 * numbers);
        slots[slot] = (long) hash << 32 | to / UNIT;
        return isLeaky() ? withoutGaps(to) : to;
    }

    private boolean isLeaky() {
        return gaps > PAGE && gaps > taken / 2;
    }

    private long allocated(byte[] key, int hash, int wanted) {
        int keyLength = key == null ? 0 : key.length;
        int length = rounded(Math.addExact(keyAt + keyLength, wanted));
        if (length > page.length - end) {
            newPage(Math.max(PAGE, length));
            end = 0;
        }
        long place = (long) (pages.size() - 1) << SHIFT | end;
        INT.set(page, end, key == null ? -1 : keyLength);
        INT.set(page, end + VALUE_LENGTH, 0);
        INT.set(page, end + ROOM, length - keyAt - keyLength);
        INT.set(page, end + HASH, hash);
        Arrays.fill(page, end + NUMBERS, end + keyAt, (byte) 0);
        if (keyLength > 0) {
            System.arraycopy(key, 0, page, end + keyAt, keyLength);
        }
        end += length;
        taken += length;
        last = place;
        return place;
    }

    private void newPage(int length) {
        if ((long) (pages.size() + 1) << SHIFT > PLACES * UNIT) {
            throw new OutOfMemoryError("a store of more than 32 GB");
        }
        page = new byte[length];
        paged += length;
        pages.add(page);
        end = 0;
    }

    private void enter(int hash, long place) {
        int at = slotOf(hash);
        while (slots[at] != FREE) {
            at = at + 1 & slots.length - 1;
        }
        slots[at] = (long) hash << 32 | place / UNIT;
        used++;
    }

    private void rehash() {
        long[] old = slots;
        int length = old.length;
        while (2L * (size + 1) > length) {
            length = Math.multiplyExact(length, 2);
        }
        slots = new long[length];
        used = 0;
        for (long slot : old) {
            if (slot != FREE && slot != REMOVED) {
                enter((int) (slot >>> 32), (slot & PLACES) * UNIT);
            }
        }
    }

    /** Copies all entries to new pages; returns where one of them is now. */
    private long withoutGaps(long wanted) {
        List<byte[]> old = pages;
        pages = new ArrayList<>();
        paged = 0;
        newPage(PAGE);
        end = FIRST_PLACE;
        taken = 0;
        gaps = 0;
        long found = NONE;
        for (int slot = 0; slot < slots.length; slot++) {
            if (slots[slot] == FREE || slots[slot] == REMOVED) {
                continue;
            }
            long place = (slots[slot] & PLACES) * UNIT;
            byte[] data = old.get((int) (place >>> SHIFT));
            int at = offsetOf(place);
            int length = rounded(keyAt + keyLength(data, at) + (int) INT.get(data, at + ROOM));
            if (length > page.length - end) {
                newPage(Math.max(PAGE, length));
            }
            long to = (long) (pages.size() - 1) << SHIFT | end;
            System.arraycopy(data, at, page, end, length);
            end += length;
            taken += length;
            slots[slot] = slots[slot] & ~PLACES | to / UNIT;
            found = place == wanted ? to : found;
        }
        last = found;
        return found;
    }
}
