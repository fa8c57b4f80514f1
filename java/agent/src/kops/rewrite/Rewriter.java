package kops.rewrite;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Lets every constructor of KafkaStreams call the hook before anything else, its super constructor included. */
public final class Rewriter extends Methods {
    private static final String TOPOLOGY = "org/apache/kafka/streams/Topology";
    private static final String SUPPLIER = "org/apache/kafka/streams/KafkaClientSupplier";
    private static final String HOOK = "kops/agent/Hook";

    @Override
    MethodVisitor rewritten(final String owner, final String name, final String descriptor, final MethodVisitor next) {
        return "<init>".equals(name) ? hooked(next, descriptor) : next;
    }

    private static MethodVisitor hooked(final MethodVisitor next, final String descriptor) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                final Type[] given = Type.getArgumentTypes(descriptor);
                if (given.length > 1 && given[0].getSort() == Type.OBJECT && TOPOLOGY.equals(given[0].getInternalName())) {
                    if (given.length > 2 && given[2].getSort() == Type.OBJECT && SUPPLIER.equals(given[2].getInternalName())) {
                        visitVarInsn(Opcodes.ALOAD, 3);
                        visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, "supplied", "(Ljava/lang/Object;)V", false);
                    }
                    visitVarInsn(Opcodes.ALOAD, 1);
                    visitVarInsn(Opcodes.ALOAD, 2);
                    visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, "constructed", "(Ljava/lang/Object;Ljava/lang/Object;)V", false);
                } else {
                    visitLdcInsn(descriptor);
                    visitMethodInsn(Opcodes.INVOKESTATIC, HOOK, "unknown", "(Ljava/lang/String;)V", false);
                }
            }
        };
    }
}
