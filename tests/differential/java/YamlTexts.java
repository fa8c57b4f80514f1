import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;
import org.snakeyaml.engine.v2.schema.CoreSchema;

/** A text of YAML: its documents as snakeyaml-engine reads them by the core schema of YAML 1.2, each scalar with its tag and its text. */
final class YamlTexts implements Judge.Family {
    @Override
    public Object judge(JsonNode given) {
        LoadSettings settings = LoadSettings.builder().setSchema(new CoreSchema()).build();
        ArrayNode documents = Judge.JSON.createArrayNode();
        for (Node document : new Compose(settings).composeAllFromString(given.textValue())) {
            documents.add(found(document));
        }
        return documents;
    }

    /** Return [TAG, TEXT], ["list", ...] or ["map", [KEY, VALUE], ...]. */
    private ArrayNode found(Node node) {
        ArrayNode found = Judge.JSON.createArrayNode();
        if (node instanceof ScalarNode scalar) {
            found.add(node.getTag().getValue()).add(Judge.units(scalar.getValue()));
        } else if (node instanceof SequenceNode list) {
            found.add("list");
            list.getValue().forEach(each -> found.add(found(each)));
        } else {
            found.add("map");
            for (NodeTuple each : ((MappingNode) node).getValue()) {
                found.addArray().add(found(each.getKeyNode())).add(found(each.getValueNode()));
            }
        }
        return found;
    }
}
