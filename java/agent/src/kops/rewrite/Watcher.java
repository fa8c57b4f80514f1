package kops.rewrite;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.UnaryOperator;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Lets the methods of a program call the hook before each call whose result differs from run to run, or from machine to machine: of a clock,
 * of random numbers, of the network or a database, of the environment; before each that asks for a record's offset; and where they name
 * punctuation by wall-clock time. Returns null for a class without any of it.
 */
public final class Watcher implements UnaryOperator<byte[]> {
    private static final String HOOK = "kops/agent/Hook";
    private static final String PUNCTUATION = "org/apache/kafka/streams/processor/PunctuationType";
    private static final List<String> TELLING = List.of("currentTimeMillis", "nanoTime", "java/time/", "java/util/Date", "Calendar", "java/text/",
        "java/lang/Math", "java/lang/StrictMath", "Random", "randomUUID", "randomUuid", "shuffle", "java/net/", "java/nio/channels/",
        "java/sql/", "javax/sql/", "currentSystemTimeMs", "getenv", "java/util/TimeZone", "org/apache/kafka/common/utils/",
        "RecordMetadata", "ProcessorContext", "RecordContext", "PunctuationType");
    private static final List<String> NOW = List.of("java/time/Instant", "java/time/LocalDate", "java/time/LocalDateTime",
        "java/time/LocalTime", "java/time/ZonedDateTime", "java/time/OffsetDateTime", "java/time/OffsetTime", "java/time/Year",
        "java/time/YearMonth", "java/time/MonthDay");
    private static final String SETS_ZONE = "setTimeZone";
    private static final List<String> FIELDS_OF_DATES = List.of("getYear", "getMonth", "getDate", "getDay", "getHours", "getMinutes", "getSeconds",
        "getTimezoneOffset", "toLocalDate", "toLocalDateTime", "toLocalTime", "toString", "valueOf", "parse");

    @Override
    public byte[] apply(final byte[] bytes) {
        final String text = new String(bytes, StandardCharsets.ISO_8859_1);
        if (TELLING.stream().noneMatch(text::contains)) return null;
        final ClassReader reader = new ClassReader(bytes);
        final ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        final boolean[] found = new boolean[1];
        final boolean setsZone = text.contains(SETS_ZONE);
        final String owner = reader.getClassName().replace('/', '.');
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    final int access, final String name, final String descriptor, final String signature, final String[] exceptions) {
                return watched(super.visitMethod(access, name, descriptor, signature, exceptions), owner + "." + name, setsZone, found);
            }
        }, 0);
        return found[0] ? writer.toByteArray() : null;
    }

    /** @param setsZone whether the class gives what it makes a time zone */
    private static MethodVisitor watched(final MethodVisitor next, final String place, final boolean setsZone, final boolean[] found) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(
                    final int opcode, final String type, final String name, final String descriptor, final boolean isInterface) {
                if (differs(type, name, descriptor) || !setsZone && isOfDefaultZone(type, name, descriptor)) say("seen", type, name);
                super.visitMethodInsn(opcode, type, name, descriptor, isInterface);
            }

            /** The kind of punctuators that a clock calls, wherever a program schedules them. */
            @Override
            public void visitFieldInsn(final int opcode, final String type, final String name, final String descriptor) {
                if (opcode == Opcodes.GETSTATIC && type.equals(PUNCTUATION) && name.equals("WALL_CLOCK_TIME")) say("seen", type, name);
                super.visitFieldInsn(opcode, type, name, descriptor);
            }

            /** A reference to a method, such as System::currentTimeMillis: who calls it is not seen. */
            @Override
            public void visitInvokeDynamicInsn(
                    final String name, final String descriptor, final Handle bootstrap, final Object... arguments) {
                for (final Object each : arguments) {
                    if (!(each instanceof Handle)) continue;
                    final Handle handle = (Handle) each;
                    if (differs(handle.getOwner(), handle.getName(), handle.getDesc())) say("referred", handle.getOwner(), handle.getName());
                }
                super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments);
            }

            private void say(final String how, final String type, final String name) {
                found[0] = true;
                final String short_ = type.substring(type.lastIndexOf('/') + 1);
                visitLdcInsn(place + ": " + ("<init>".equals(name) ? "new " + short_ : short_ + "." + name));
                super.visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, how, "(Ljava/lang/String;)V", false);
            }
        };
    }

    /** Whether what a method returns, or makes, depends on more than its arguments. */
    static boolean differs(final String type, final String name, final String descriptor) {
        final boolean made = "<init>".equals(name);
        switch (type) {
            case "java/lang/System":
                return name.equals("currentTimeMillis") || name.equals("nanoTime") || name.equals("getenv");
            case "java/lang/Math":
            case "java/lang/StrictMath":
                return name.equals("random");
            case "java/time/Clock":
            case "java/time/InstantSource":
                return name.equals("millis") || name.equals("instant");
            case "java/time/ZoneId":
                return name.equals("systemDefault");
            case "java/util/TimeZone":
                return name.equals("getDefault");
            case "org/apache/kafka/common/utils/Time":
            case "org/apache/kafka/common/utils/SystemTime":
                return name.equals("milliseconds") || name.equals("nanoseconds") || name.equals("hiResClockMs");
            case "org/apache/kafka/common/Uuid":
                return name.equals("randomUuid");
            case "java/util/Date":
            case "java/util/GregorianCalendar":
                return made && descriptor.equals("()V");
            case "java/util/Calendar":
                return name.equals("getInstance");
            case "java/util/Random":
            case "java/util/SplittableRandom":
                return made && descriptor.equals("()V") || isDrawn(name);
            case "java/util/random/RandomGenerator":
                return isDrawn(name);
            case "java/util/concurrent/ThreadLocalRandom":
            case "java/security/SecureRandom":
                return true;
            case "java/util/UUID":
                return name.equals("randomUUID");
            case "java/util/Collections":
                return name.equals("shuffle") && descriptor.equals("(Ljava/util/List;)V");
            case "java/net/URL":
                return name.startsWith("open");
            case "java/net/Socket":
            case "java/net/DatagramSocket":
            case "java/net/InetAddress":
            case "java/nio/channels/SocketChannel":
                return true;
            default:
                return NOW.contains(type) && name.equals("now") || type.startsWith("java/net/http/HttpClient")
                    || type.startsWith("java/sql/") && isQuery(name) || type.equals("javax/sql/DataSource")
                    || type.startsWith("org/apache/kafka/streams/processor/") && (name.equals("currentSystemTimeMs") || name.equals("offset"));
        }
    }

    /** Whether a method goes by the default time zone without naming it; what is made may get another zone later. */
    private static boolean isOfDefaultZone(final String type, final String name, final String descriptor) {
        final boolean made = "<init>".equals(name);
        switch (type) {
            case "java/text/SimpleDateFormat":
                return made;
            case "java/text/DateFormat":
                return name.startsWith("get") && name.endsWith("Instance");
            case "java/util/GregorianCalendar":
                return made && !descriptor.contains("TimeZone");
            case "java/util/Date":
            case "java/sql/Date":
            case "java/sql/Timestamp":
                return made && !descriptor.equals("(J)V") || FIELDS_OF_DATES.contains(name);
            default:
                return false;
        }
    }

    private static boolean isDrawn(final String name) {
        return name.startsWith("next") || name.equals("ints") || name.equals("longs") || name.equals("doubles");
    }

    /** Not the classes of values, such as java.sql.Timestamp. */
    private static boolean isQuery(final String name) {
        return name.startsWith("execute") || name.equals("getConnection") || name.equals("prepareStatement") || name.equals("createStatement");
    }
}
