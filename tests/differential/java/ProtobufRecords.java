import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.WrappersProto;
import com.google.protobuf.util.JsonFormat;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/** {"file": HEX of a FileDescriptorProto, "message": NAME, "data": HEX}: read by DynamicMessage; Google's own types as JsonFormat prints them. */
final class ProtobufRecords implements Judge.Family {
    private static final Set<String> PRINTED = Set.of("google.protobuf.Timestamp", "google.protobuf.Duration");

    @Override
    public Object judge(JsonNode given) throws Exception {
        FileDescriptorProto proto = FileDescriptorProto.parseFrom(HexFormat.of().parseHex(given.get("file").textValue()));
        FileDescriptor[] google = {TimestampProto.getDescriptor(), DurationProto.getDescriptor(), WrappersProto.getDescriptor()};
        Descriptor type = FileDescriptor.buildFrom(proto, google).findMessageTypeByName(given.get("message").textValue());
        byte[] data = HexFormat.of().parseHex(given.get("data").textValue());
        return message(DynamicMessage.newBuilder(type).mergeFrom(data).buildPartial());
    }

    private static JsonNode message(Message found) {
        Descriptor type = found.getDescriptorForType();
        if (type.getFullName().endsWith("Value") && type.getFullName().startsWith("google.protobuf.")) {
            FieldDescriptor wrapped = type.findFieldByName("value");
            return single(wrapped, found.getField(wrapped));
        }
        if (PRINTED.contains(type.getFullName())) {
            try {
                return Judge.JSON.createArrayNode().add("text").add(Judge.JSON.readTree(JsonFormat.printer().print(found)).textValue());
            } catch (InvalidProtocolBufferException | IllegalArgumentException | com.fasterxml.jackson.core.JacksonException none) {
                return fields(found, type);
            }
        }
        return fields(found, type);
    }

    private static JsonNode fields(Message found, Descriptor type) {
        ArrayNode said = Judge.JSON.createArrayNode().add("message");
        for (FieldDescriptor field : type.getFields()) {
            if (!field.hasPresence() || found.hasField(field)) {
                said.addArray().add(field.getName()).add(field(field, found.getField(field)));
            }
        }
        return said;
    }

    private static JsonNode field(FieldDescriptor field, Object found) {
        ArrayNode said = Judge.JSON.createArrayNode();
        if (field.isMapField()) {
            ObjectNode entries = Judge.JSON.createObjectNode();
            for (Object each : (List<?>) found) {
                Message entry = (Message) each;
                FieldDescriptor key = field.getMessageType().findFieldByName("key");
                FieldDescriptor value = field.getMessageType().findFieldByName("value");
                entries.set(single(key, entry.getField(key)).get(1).textValue(), single(value, entry.getField(value)));
            }
            return said.add("map").add(entries);
        }
        if (field.isRepeated()) {
            said.add("list");
            ((List<?>) found).forEach(each -> said.add(single(field, each)));
            return said;
        }
        return single(field, found);
    }

    private static JsonNode single(FieldDescriptor field, Object found) {
        ArrayNode said = Judge.JSON.createArrayNode();
        return switch (field.getType()) {
            case MESSAGE, GROUP -> message((Message) found);
            case ENUM -> named((EnumValueDescriptor) found);
            case BYTES -> said.add("bytes").add(HexFormat.of().formatHex(((ByteString) found).toByteArray()));
            case FLOAT -> said.add("float").add(found.toString());
            case DOUBLE -> said.add("double").add(found.toString());
            case UINT64, FIXED64 -> said.add("text").add(Long.toUnsignedString((Long) found));
            case UINT32, FIXED32 -> said.add("text").add(Integer.toUnsignedString((Integer) found));
            default -> said.add("text").add(found.toString());
        };
    }

    private static JsonNode named(EnumValueDescriptor found) {
        boolean known = found.getIndex() >= 0;
        return Judge.JSON.createArrayNode().add("text").add(known ? found.getName() : Integer.toString(found.getNumber()));
    }
}
