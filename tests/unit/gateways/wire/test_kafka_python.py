"""The parts of kafka-python below its documented classes that kops uses: this fails when a release of it no longer has them."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.errors import NodeNotReadyError
from kafka.net import compat
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.broker_version_data import BrokerVersionData

import kops
from kops.gateways.wire import kafka_python

SOURCE = Path(kops.__file__).parent
ADAPTERS = {"kafka": SOURCE / "gateways" / "wire" / "kafka_python.py", "pyspark": SOURCE / "spark" / "driver" / "pyspark_internals.py"}
BELOW = {
    "kafka": ("kafka.net", "kafka.protocol", "kafka.conn", "kafka.cluster", "kafka.client", "kafka.record", "kafka.util", "kafka.codec"),
    "pyspark": (
        "pyspark.daemon",
        "pyspark.worker",
        "pyspark.java_gateway",
        "pyspark.serializers",
        "py4j.java_gateway",
        "py4j.java_collections",
    ),
}
PRIVATE = {
    "kafka": {"_manager", "_find_coordinator_ids", "_net"},
    "pyspark": {"_jsc", "_gateway", "_jdf", "_jsparkSession", "_sc", "_jconf", "_jc"},
}

FIELDS = {
    "AddOffsetsToTxnRequest": {"transactional_id", "producer_id", "producer_epoch", "group_id"},
    "AddPartitionsToTxnRequest": {
        *("v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics"),
    },
    "AddPartitionsToTxnRequest.AddPartitionsToTxnTopic": {"name", "partitions"},
    "AlterClientQuotasRequest": {"entries", "validate_only"},
    "AlterClientQuotasRequest.EntryData": {"entity", "ops"},
    "AlterClientQuotasRequest.EntryData.EntityData": {"entity_type", "entity_name"},
    "AlterClientQuotasRequest.EntryData.OpData": {"key", "value", "remove"},
    "AlterPartitionReassignmentsRequest": {"timeout_ms", "topics"},
    "AlterPartitionReassignmentsRequest.ReassignableTopic": {"name", "partitions"},
    "AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition": {"partition_index", "replicas"},
    "AlterReplicaLogDirsRequest": {"dirs"},
    "AlterReplicaLogDirsRequest.AlterReplicaLogDir": {"path", "topics"},
    "AlterReplicaLogDirsRequest.AlterReplicaLogDir.AlterReplicaLogDirTopic": {"name", "partitions"},
    "ApiVersionsRequest": {"client_software_name", "client_software_version"},
    "CreateAclsRequest": {"creations"},
    "CreateAclsRequest.AclCreation": {
        *("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type"),
    },
    "DeleteAclsRequest": {"filters"},
    "DeleteAclsRequest.DeleteAclsFilter": {
        *("resource_type_filter", "resource_name_filter", "pattern_type_filter"),
        *("principal_filter", "host_filter", "operation", "permission_type"),
    },
    "DescribeAclsRequest": {
        *("resource_type_filter", "resource_name_filter", "pattern_type_filter"),
        *("principal_filter", "host_filter", "operation", "permission_type"),
    },
    "DescribeClientQuotasRequest": {"components", "strict"},
    "DescribeClusterRequest": {"include_cluster_authorized_operations", "include_fenced_brokers"},
    "DescribeConfigsRequest": {"resources", "include_synonyms"},
    "DescribeConfigsRequest.DescribeConfigsResource": {"resource_type", "resource_name", "configuration_keys"},
    "DescribeGroupsRequest": {"groups", "include_authorized_operations"},
    "DescribeLogDirsRequest": {"topics"},
    "DescribeQuorumRequest": {"topics"},
    "DescribeUserScramCredentialsRequest": {"users"},
    "DescribeUserScramCredentialsRequest.UserName": {"name"},
    "DescribeQuorumRequest.TopicData": {"topic_name", "partitions"},
    "DescribeQuorumRequest.TopicData.PartitionData": {"partition_index"},
    "ElectLeadersRequest": {"election_type", "topic_partitions", "timeout_ms"},
    "ElectLeadersRequest.TopicPartitions": {"topic", "partitions"},
    "EndTxnRequest": {"transactional_id", "producer_id", "producer_epoch", "committed"},
    "FetchRequest": {"replica_id", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "topics"},
    "FetchRequest.FetchTopic": {"topic", "partitions"},
    "FetchRequest.FetchTopic.FetchPartition": {"partition", "fetch_offset", "partition_max_bytes"},
    "FindCoordinatorRequest": {"key", "key_type"},
    "IncrementalAlterConfigsRequest": {"resources", "validate_only"},
    "IncrementalAlterConfigsRequest.AlterConfigsResource": {"resource_type", "resource_name", "configs"},
    "IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig": {"name", "config_operation", "value"},
    "InitProducerIdRequest": {"transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch"},
    "LeaveGroupRequest": {"group_id", "members"},
    "LeaveGroupRequest.MemberIdentity": {"member_id", "group_instance_id", "reason"},
    "ListConfigResourcesRequest": {"resource_types"},
    "ListOffsetsRequest": {"isolation_level", "topics", "timeout_ms"},
    "ListOffsetsRequest.ListOffsetsTopic": {"name", "partitions"},
    "ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition": {"partition_index", "timestamp"},
    "OffsetCommitRequest": {"group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "topics"},
    "OffsetCommitRequest.OffsetCommitRequestTopic": {"name", "partitions"},
    "OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition": {
        *("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata"),
    },
    "OffsetFetchRequest": {"group_id", "topics", "require_stable", "groups"},
    "OffsetFetchRequest.OffsetFetchRequestGroup": {"group_id", "topics"},
    "OffsetFetchRequest.OffsetFetchRequestTopic": {"name", "partition_indexes"},
    "OffsetForLeaderEpochRequest": {"replica_id", "topics"},
    "OffsetForLeaderEpochRequest.OffsetForLeaderTopic": {"topic", "partitions"},
    "OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition": {"partition", "current_leader_epoch", "leader_epoch"},
    "ProduceRequest": {"transactional_id", "acks", "timeout_ms", "topic_data"},
    "ProduceRequest.TopicProduceData": {"name", "partition_data"},
    "ProduceRequest.TopicProduceData.PartitionProduceData": {"index", "records"},
    "TxnOffsetCommitRequest": {
        *("transactional_id", "producer_id", "producer_epoch", "group_id", "generation_id", "member_id", "group_instance_id", "topics"),
    },
    "TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic": {"name", "partitions"},
    "TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition": {
        *("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata"),
    },
    "UpdateFeaturesRequest": {"timeout_ms", "feature_updates", "validate_only"},
    "UpdateFeaturesRequest.FeatureUpdateKey": {"feature", "max_version_level", "upgrade_type"},
}


def test_every_request_that_is_made_is_checked_here():
    assert {name.partition(".")[0] for name in FIELDS} == set(kafka_python.REQUESTS)


@pytest.mark.parametrize("name", FIELDS)
def test_request_has_the_fields(name):
    root, *inner = name.split(".")
    found = kafka_python.request_class(root)
    for part in inner:
        found = getattr(found, part)
    made = found(**dict.fromkeys(FIELDS[name]))
    assert {field for field in FIELDS[name] if getattr(made, field, ...) is ...} == set()


@pytest.mark.parametrize(
    ("name", "versions"),
    [("OffsetFetchRequest", (1, 7)), ("ProduceRequest", (3, 9)), ("FetchRequest", (4, 11)), ("OffsetCommitRequest", (2, 8))],
)
def test_request_takes_a_range_of_versions(name, versions):
    lowest, highest = versions
    request = kafka_python.request_class(name)(min_version=lowest, max_version=highest)
    assert (request._min_version, request._max_version) == versions
    assert type(request).min_version <= lowest
    assert highest <= type(request).max_version


def parameters(function):
    return list(inspect.signature(function).parameters)


def test_admin_client_has_its_connections_and_finds_coordinators():
    assert "_manager" in inspect.getsource(KafkaAdminClient.__init__)
    assert parameters(KafkaAdminClient._find_coordinator_ids) == ["self", "keys", "key_type"]
    assert inspect.iscoroutinefunction(KafkaAdminClient._find_coordinator_ids)
    assert parameters(KafkaConnectionManager.run)[:2] == ["self", "coro"]
    assert parameters(KafkaConnectionManager.send)[:3] == ["self", "request", "node_id"]
    assert "self.broker_version_data = " in inspect.getsource(KafkaConnectionManager.__init__)
    assert isinstance(BrokerVersionData((4, 0)).broker_version_str, str)
    assert kafka_python.release_by_requests(BrokerVersionData((3, 9)).api_versions) == "3.9"


def test_nothing_goes_to_brokers_that_are_avoided():
    assert "self._backoff = dict()" in inspect.getsource(KafkaConnectionManager.__init__)
    manager = object.__new__(KafkaConnectionManager)
    manager._backoff, manager._conns, manager._auth_failures = {}, {}, {}
    manager.config = {"socket_connection_setup_timeout_ms": 10_000}
    manager.cluster = SimpleNamespace(brokers=lambda: [SimpleNamespace(node_id=number) for number in (1, 2, 3)])
    kafka_python.avoid(SimpleNamespace(_manager=manager), [1, 2], 3600)
    assert {manager.least_loaded_node() for _ in range(50)} == {3}
    with pytest.raises(NodeNotReadyError):
        manager.get_connection(1)


def test_metadata_keeps_coordinators_in_a_dictionary():
    cluster = ClusterMetadata()
    assert cluster._coordinators == {}
    assert list(cluster.brokers()) == []
    assert parameters(ClusterMetadata.leader_for_partition) == ["self", "partition"]
    assert parameters(ClusterMetadata.add_topic)[:2] == ["self", "topic"]
    assert callable(ClusterMetadata.request_update)
    assert inspect.iscoroutinefunction(ClusterMetadata.refresh_metadata)
    assert parameters(KafkaConnectionManager.call_soon)[:2] == ["self", "coro"]


def test_connections_have_the_methods():
    taken = {
        "await_ready": ["node_id", "timeout_ms"],
        "close": [],
        "get_broker_version": ["timeout_ms"],
        "least_loaded_node": ["bootstrap_fallback"],
        "poll": ["timeout_ms", "future"],
        "send": ["node_id", "request"],
        "send_and_receive": ["node_id", "request", "timeout_ms"],
        "throttle_delay": ["node_id"],
    }
    for name, expected in taken.items():
        assert set(expected) <= set(parameters(getattr(compat.KafkaNetClient, name))), name
    assert isinstance(compat.KafkaNetClient.cluster, property)
    assert compat.__name__ == "kafka.net.compat"


def test_socket_factory_is_found_by_its_scheme():
    class Made(kafka_python.socket_factory()):
        SCHEMES = ("kops-shape",)

    assert type(kafka_python.socket_factory()("kops-shape://")) is Made
    assert parameters(kafka_python.socket_factory().socket)[:4] == ["self", "family", "sock_type", "proto"]


def test_answer_of_an_offset_fetch_comes_undecoded():
    import io

    from kafka.protocol.consumer import OffsetFetchResponse

    request = kafka_python.undecoded_offset_fetch(8)
    made = request(groups=[request.OffsetFetchRequestGroup(group_id="billing", topics=None)], min_version=8, max_version=8)
    made.with_header(correlation_id=1, client_id="kops")
    answer = made.header.get_response_class()
    assert answer.decode(io.BytesIO(b"as it is")).data == b"as it is"
    assert callable(OffsetFetchResponse[8].parse_header)


def test_message_of_our_own_is_encoded():
    fields = [{"name": "GroupIds", "type": "[]string", "versions": "0+"}]
    common = {"apiKey": 89, "validVersions": "0", "flexibleVersions": "0+"}
    answer = kafka_python.message_class({**common, "type": "response", "name": "StreamsGroupDescribeResponse", "fields": fields})
    request = kafka_python.message_class({**common, "type": "request", "name": "StreamsGroupDescribeRequest", "fields": fields})
    assert b"billing" in request(group_ids=["billing"]).encode(version=0)
    assert answer is not None


def test_token_provider_gives_its_token():
    provider = kafka_python.token_provider(lambda: "abc", {"a": "b"})
    assert (provider.token(), provider.extensions()) == ("abc", {"a": "b"})


def imports_and_attributes(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            yield node.attr


@pytest.mark.parametrize("library", ADAPTERS)
def test_only_the_adapter_reaches_below_the_public_surface(library):
    below, private = BELOW[library], PRIVATE[library]
    texts = {file: file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py") if file != ADAPTERS[library]}
    found = {
        (str(file.relative_to(SOURCE)), name)
        for file, text in texts.items()
        if any(name in text for name in (*below, *private))
        for name in imports_and_attributes(text)
        if name in private or any(name == module or name.startswith(f"{module}.") for module in below)
    }
    assert found == set()


def test_requests_need_a_permit_unless_they_are_known_to_change_nothing():
    """All requests of kafka-python whose names say so, and the answer of kops' own way to read offsets."""
    sent, refused = [], []
    admin = SimpleNamespace(_manager=SimpleNamespace(send=sent.append))
    kafka_python.require_permit(admin, refused.append)
    made = [
        type(name, (), {})() for name in ("DescribeGroupsRequest", "ListOffsetsRequest", "ConsumerGroupDescribeRequest", "MetadataRequest")
    ]
    made.append(object.__new__(kafka_python.undecoded_offset_fetch(8)))
    changes = (
        "DeleteTopicsRequest",
        "OffsetCommitRequest",
        "AlterPartitionReassignmentsRequest",
        "InitProducerIdRequest",
        "ElectLeadersRequest",
    )
    for request in (*made, *(type(name, (), {})() for name in changes)):
        admin._manager.send(request)
    assert (len(sent), tuple(refused)) == (len(made) + len(changes), changes)
