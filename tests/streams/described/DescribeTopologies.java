import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.util.Map;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;

/** Prints, for every topology of {@link TopologyTexts}, its description as text, and by the library's own methods as JSON. */
public final class DescribeTopologies {
    private DescribeTopologies() {}

    public static void main(String[] none) {
        PrintStream out = System.out;
        System.setOut(System.err); // logs must not come between
        ObjectNode all = new ObjectMapper().createObjectNode();
        for (Map.Entry<String, Topology> each : new TopologyTexts("").all().entrySet()) {
            TopologyDescription described = each.getValue().describe();
            ObjectNode one = all.putObject(each.getKey()).put("text", described.toString());
            ArrayNode nodes = one.putArray("nodes");
            for (TopologyDescription.Subtopology part : described.subtopologies()) {
                for (TopologyDescription.Node node : part.nodes()) {
                    fill(nodes.addObject().put("subtopology", part.id()), node);
                }
            }
            for (TopologyDescription.GlobalStore store : described.globalStores()) {
                fill(nodes.addObject().put("global", store.id()), store.source());
                fill(nodes.addObject().put("global", store.id()), store.processor());
            }
        }
        out.println(all);
    }

    private static void fill(ObjectNode json, TopologyDescription.Node node) {
        json.put("name", node.name());
        ArrayNode successors = json.putArray("successors");
        node.successors().stream().map(TopologyDescription.Node::name).sorted().forEach(successors::add);
        ArrayNode predecessors = json.putArray("predecessors");
        node.predecessors().stream().map(TopologyDescription.Node::name).sorted().forEach(predecessors::add);
        if (node instanceof TopologyDescription.Source source) {
            ArrayNode topics = json.put("kind", "source").putArray("topics");
            if (source.topicSet() != null) {
                source.topicSet().stream().sorted().forEach(topics::add);
            }
            json.put("pattern", source.topicPattern() == null ? null : source.topicPattern().pattern());
        } else if (node instanceof TopologyDescription.Sink sink) {
            json.put("kind", "sink").put("topic", sink.topic());
        } else if (node instanceof TopologyDescription.Processor processor) {
            ArrayNode stores = json.put("kind", "processor").putArray("stores");
            processor.stores().stream().sorted().forEach(stores::add);
        }
    }
}
