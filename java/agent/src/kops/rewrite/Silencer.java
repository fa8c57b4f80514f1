package kops.rewrite;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Empties the first methods of an agent: those that a JVM calls before a program's main. */
public final class Silencer extends Methods {
    @Override
    MethodVisitor rewritten(final String owner, final String name, final String descriptor, final MethodVisitor next) {
        if (!name.equals("premain")) return next;
        next.visitCode();
        next.visitInsn(Opcodes.RETURN);
        next.visitMaxs(0, 2);
        next.visitEnd();
        return null;
    }
}
