package kops.rewrite;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Shifts what a class reads of the time of day. All of Java reads it by two native methods, so that this reaches whatever a program calls;
 * System.nanoTime() counts from no time of day. Returns null for a class that calls neither.
 */
public final class Clock extends Methods {
    private static final String HOOK = "kops/agent/Hook";
    private static final String MILLIS = "currentTimeMillis";
    private static final String NANOS = "getNanoTimeAdjustment";

    @Override
    public byte[] apply(final byte[] bytes) {
        final String text = new String(bytes, StandardCharsets.ISO_8859_1);
        if (!text.contains(MILLIS) && !text.contains(NANOS)) return null;
        return super.apply(bytes);
    }

    @Override
    MethodVisitor rewritten(final String owner, final String name, final String descriptor, final MethodVisitor next) {
        return shifted(next);
    }

    private static MethodVisitor shifted(final MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(
                    final int opcode, final String owner, final String name, final String descriptor, final boolean isInterface) {
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
                final boolean millis = isMillis(owner, name);
                if (millis || owner.equals("jdk/internal/misc/VM") && name.equals(NANOS)) {
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, millis ? "shiftedMillis" : "shiftedNanos", "(J)J", false);
                }
            }

            @Override
            public void visitInvokeDynamicInsn(
                    final String name, final String descriptor, final Handle bootstrap, final Object... arguments) {
                super.visitInvokeDynamicInsn(name, descriptor, bootstrap, Arrays.stream(arguments)
                    .map(each -> each instanceof Handle && isMillis(((Handle) each).getOwner(), ((Handle) each).getName())
                        ? new Handle(Opcodes.H_INVOKESTATIC, HOOK, "millis", "()J", false)
                        : each)
                    .toArray());
            }
        };
    }

    private static boolean isMillis(final String owner, final String name) {
        return owner.equals("java/lang/System") && name.equals(MILLIS);
    }
}
