package kops.rewrite;

import java.util.function.UnaryOperator;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Lets the library's StreamTask call the hook before it schedules a punctuator: each is scheduled there, whichever class asks for it. */
public final class ScheduleWatcher implements UnaryOperator<byte[]> {
    private static final String PROCESSOR = "org/apache/kafka/streams/processor/";
    private static final String HOOK = "kops/agent/Hook";

    @Override
    public byte[] apply(final byte[] bytes) {
        final ClassReader reader = new ClassReader(bytes);
        final ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        final boolean[] found = new boolean[1];
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    final int access, final String name, final String descriptor, final String signature, final String[] exceptions) {
                final MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                final int type = slotOfType(descriptor);
                if (!"schedule".equals(name) || (access & Opcodes.ACC_PUBLIC) == 0 || type < 0) return next;
                found[0] = true;
                return hooked(next, reader.getClassName(), type);
            }
        }, 0);
        if (!found[0]) throw new IllegalStateException("no public method schedules punctuators");
        return writer.toByteArray();
    }

    /** Where the type of a punctuator is among a method's variables; -1: it has none. */
    private static int slotOfType(final String descriptor) {
        int slot = 1;
        for (final Type each : Type.getArgumentTypes(descriptor)) {
            if (each.getDescriptor().equals("L" + PROCESSOR + "PunctuationType;")) return slot;
            slot += each.getSize();
        }
        return -1;
    }

    private static MethodVisitor hooked(final MethodVisitor next, final String owner, final int type) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                visitVarInsn(Opcodes.ALOAD, 0);
                visitMethodInsn(Opcodes.INVOKEVIRTUAL, owner, "id", "()L" + PROCESSOR + "TaskId;", false);
                visitVarInsn(Opcodes.ALOAD, type);
                visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, "scheduled", "(Ljava/lang/Object;Ljava/lang/Object;)V", false);
            }
        };
    }
}
