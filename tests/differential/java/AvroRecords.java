import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.time.DateTimeException;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalType;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

/**
 * {"schema": TEXT, "data": HEX}: read by GenericDatumReader, as every consumer does, and each value of a logical type by Avro's conversion
 * for it; where that refuses the value, it stays the underlying one.
 */
final class AvroRecords implements Judge.Family {
    private final DecimalsAndTimes conversions = new DecimalsAndTimes();

    @Override
    public Object judge(JsonNode given) throws Exception {
        Schema schema = new Schema.Parser().setValidateDefaults(false).parse(given.get("schema").textValue());
        byte[] data = HexFormat.of().parseHex(given.get("data").textValue());
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(data, null);
        Object found = new GenericDatumReader<>(schema, schema, new GenericData()).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalArgumentException("more follows");
        }
        return value(schema, found);
    }

    private JsonNode value(Schema schema, Object found) {
        ArrayNode said = Judge.JSON.createArrayNode();
        if (schema.getType() == Schema.Type.UNION) {
            return value(schema.getTypes().get(GenericData.get().resolveUnion(schema, found)), found);
        }
        String logical = conversions.text(schema, found);
        if (logical != null) {
            return said.add("logical").add(logical);
        }
        switch (schema.getType()) {
            case RECORD -> {
                said.add("record");
                schema.getFields().forEach(field -> said.addArray().add(field.name()).add(value(field.schema(), ((GenericRecord) found).get(field.pos()))));
            }
            case ARRAY -> {
                said.add("array");
                ((Iterable<?>) found).forEach(each -> said.add(value(schema.getElementType(), each)));
            }
            case MAP -> {
                ObjectNode entries = Judge.JSON.createObjectNode();
                ((Map<?, ?>) found).forEach((name, each) -> entries.set(name.toString(), value(schema.getValueType(), each)));
                said.add("map").add(entries);
            }
            case BYTES -> said.add("bytes").add(hex(found));
            case FIXED -> said.add("bytes").add(HexFormat.of().formatHex(((GenericFixed) found).bytes()));
            case FLOAT -> said.add("float").add(Float.toString((Float) found));
            case DOUBLE -> said.add("double").add(Double.toString((Double) found));
            case NULL -> said.add("null");
            default -> said.add("text").add(found.toString());
        }
        return said;
    }

    private static String hex(Object found) {
        ByteBuffer buffer = ((ByteBuffer) found).duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    /** Avro's own conversions. */
    private static final class DecimalsAndTimes {
        /** Return a value of a logical type as a text, or null where it stays the underlying one. */
        String text(Schema schema, Object found) {
            LogicalType type = schema.getLogicalType();
            if (type == null) {
                return null;
            }
            try {
                return switch (type.getName()) {
                    case "decimal" -> schema.getType() == Schema.Type.FIXED
                            ? new Conversions.DecimalConversion().fromFixed((GenericFixed) found, schema, type).toPlainString()
                            : new Conversions.DecimalConversion().fromBytes((ByteBuffer) found, schema, type).toPlainString();
                    case "date" -> new TimeConversions.DateConversion().fromInt((Integer) found, schema, type).toString();
                    case "time-millis" -> new TimeConversions.TimeMillisConversion().fromInt((Integer) found, schema, type).toString();
                    case "time-micros" -> new TimeConversions.TimeMicrosConversion().fromLong((Long) found, schema, type).toString();
                    case "timestamp-millis" -> new TimeConversions.TimestampMillisConversion().fromLong((Long) found, schema, type).toString();
                    case "timestamp-micros" -> new TimeConversions.TimestampMicrosConversion().fromLong((Long) found, schema, type).toString();
                    case "timestamp-nanos" -> new TimeConversions.TimestampNanosConversion().fromLong((Long) found, schema, type).toString();
                    case "local-timestamp-millis" ->
                        new TimeConversions.LocalTimestampMillisConversion().fromLong((Long) found, schema, type).toString();
                    case "local-timestamp-micros" ->
                        new TimeConversions.LocalTimestampMicrosConversion().fromLong((Long) found, schema, type).toString();
                    case "local-timestamp-nanos" ->
                        new TimeConversions.LocalTimestampNanosConversion().fromLong((Long) found, schema, type).toString();
                    default -> null;
                };
            } catch (DateTimeException | ArithmeticException | NumberFormatException beyond) {
                return null;
            }
        }
    }
}
