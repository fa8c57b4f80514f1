package kops.rewrite;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Lets classes of the JDK say what is read: the map of environment variables, below System.getenv in all its forms and ProcessBuilder; what opens
 * files, below java.io and java.nio.file; and the name of the host.
 */
public final class Recorder extends Methods {
    private static final String READS = "kops/agent/Reads";
    private static final String ENVIRONMENT = "java/lang/ProcessEnvironment$";
    private static final String FLAGS = "sun/nio/fs/UnixChannelFactory$Flags";
    private static final String PATH = "sun/nio/fs/UnixPath";
    /** RandomAccessFile.O_RDWR. */
    private static final int READ_AND_WRITE = 2;

    @Override
    MethodVisitor rewritten(final String owner, final String name, final String descriptor, final MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                say(this, owner, name, descriptor);
            }
        };
    }

    private static void say(final MethodVisitor code, final String owner, final String name, final String descriptor) {
        switch (owner + "." + name) {
            case ENVIRONMENT + "StringEnvironment.get":
            case ENVIRONMENT + "StringEnvironment.containsKey":
            case ENVIRONMENT + "StringKeySet.contains":
                code.visitVarInsn(Opcodes.ALOAD, 1);
                call(code, "variable", "(Ljava/lang/Object;)V");
                break;
            case ENVIRONMENT + "StringEntry.getValue":
                code.visitVarInsn(Opcodes.ALOAD, 0);
                call(code, "entry", "(Ljava/lang/Object;)V");
                break;
            case ENVIRONMENT + "StringEnvironment.values":
            case ENVIRONMENT + "StringEnvironment.containsValue":
                call(code, "values", "()V");
                break;
            case "java/net/InetAddress.getLocalHost":
                call(code, "host", "()V");
                break;
            case "java/io/FileInputStream.open":
                opened(code, 1, () -> code.visitInsn(Opcodes.ICONST_0));
                break;
            case "java/io/FileOutputStream.open":
                opened(code, 1, () -> code.visitInsn(Opcodes.ICONST_1));
                break;
            case "java/io/RandomAccessFile.open":
                opened(code, 1, () -> {
                    code.visitVarInsn(Opcodes.ILOAD, 2);
                    code.visitIntInsn(Opcodes.BIPUSH, READ_AND_WRITE);
                    code.visitInsn(Opcodes.IAND);
                });
                break;
            case "sun/nio/fs/UnixChannelFactory.open":
                opened(code, place(descriptor, PATH), () -> {
                    code.visitVarInsn(Opcodes.ALOAD, place(descriptor, FLAGS));
                    code.visitFieldInsn(Opcodes.GETFIELD, FLAGS, "write", "Z");
                });
                break;
            default:
        }
    }

    /** @param writes loads whether it is opened to be written */
    private static void opened(final MethodVisitor code, final int path, final Runnable writes) {
        code.visitVarInsn(Opcodes.ALOAD, path);
        writes.run();
        call(code, "file", "(Ljava/lang/Object;I)V");
    }

    private static void call(final MethodVisitor code, final String name, final String descriptor) {
        code.visitMethodInsn(Opcodes.INVOKESTATIC, READS, name, descriptor, false);
    }

    /** Where the first argument of a type stands, in a static method. */
    private static int place(final String descriptor, final String type) {
        int at = 0;
        for (final Type each : Type.getArgumentTypes(descriptor)) {
            if (each.getSort() == Type.OBJECT && type.equals(each.getInternalName())) return at;
            at += each.getSize();
        }
        throw new IllegalArgumentException(descriptor + " has no " + type);
    }
}
