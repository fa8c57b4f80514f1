package kops.rewrite;

import java.util.function.UnaryOperator;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Empties the first methods of an agent: those that a JVM calls before a program's main. */
public final class Silencer implements UnaryOperator<byte[]> {
    @Override
    public byte[] apply(final byte[] bytes) {
        final ClassReader reader = new ClassReader(bytes);
        final ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    final int access, final String name, final String descriptor, final String signature, final String[] exceptions) {
                final MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                if (!name.equals("premain")) return next;
                next.visitCode();
                next.visitInsn(Opcodes.RETURN);
                next.visitMaxs(0, 2);
                next.visitEnd();
                return null;
            }
        }, 0);
        return writer.toByteArray();
    }
}
