package kops.rewrite;

import java.util.function.UnaryOperator;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Rewrites a class method by method. */
abstract class Methods implements UnaryOperator<byte[]> {
    @Override
    public byte[] apply(final byte[] bytes) {
        final ClassReader reader = new ClassReader(bytes);
        final ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    final int access, final String name, final String descriptor, final String signature, final String[] exceptions) {
                final MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                final boolean hasCode = (access & (Opcodes.ACC_NATIVE | Opcodes.ACC_ABSTRACT)) == 0;
                return hasCode ? rewritten(reader.getClassName(), name, descriptor, next) : next;
            }
        }, 0);
        return writer.toByteArray();
    }

    /** Return what is given the code of a method of a class: next as it is, or before it; null, if other code was written already. */
    abstract MethodVisitor rewritten(String owner, String name, String descriptor, MethodVisitor next);
}
