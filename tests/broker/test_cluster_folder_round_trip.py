"""Every kind of a folder from one cluster to an empty one that checks rights, and back; what came, librdkafka says."""

import pytest
import yaml
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker
ANY = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
FILES = {
    "topics": [{"name": "shop-orders", "partitions": 3, "replication_factor": 1, "config": {"retention.ms": "70000"}}],
    "brokers": [
        {"broker": "default", "config": {"log.cleaner.backoff.ms": "14000", "min.insync.replicas": "1"}},
        {"broker": "1", "config": {"log.retention.ms": "3600000"}},
    ],
    "groups": [{"name": "shop-billing", "config": {"consumer.session.timeout.ms": "50000"}}],
    "client-metrics": [{"name": "shop-slow", "config": {"interval.ms": "30000", "match": "client_id=a.*", "metrics": "org.apache."}}],
    "quotas": [
        {"defaults": ["user"], "quotas": {"producer_byte_rate": 5000}},
        {"ip": "10.0.0.1", "quotas": {"connection_creation_rate": 5}},
        {"user": "shop-a", "defaults": ["client-id"], "quotas": {"consumer_byte_rate": 1000, "request_percentage": 12.5}},
    ],
    "acls": [
        {
            "principal": "User:shop-a",
            "allow": [{"resource": "topic", "name": "shop-", "pattern": "prefixed", "operations": ["READ", "WRITE"]}],
            "deny": [{"resource": "topic", "name": "shop-secret", "host": "10.0.0.1", "operations": ["READ"]}],
        },
        {"principal": "User:shop-b", "allow": [{"resource": "cluster", "name": "kafka-cluster", "operations": ["DESCRIBE"]}]},
    ],
    "users": [
        {"name": "kops", "mechanisms": {"SCRAM-SHA-512": 4096}},
        {"name": "shop-a", "mechanisms": {"SCRAM-SHA-256": 5000}},
    ],
}
"""All that a cluster has, sorted as it is exported."""
USER = "shop-a SCRAM-SHA-256"


@pytest.fixture(scope="module")
def checking(own_brokers):
    return own_brokers(security="acl")


@pytest.fixture
def kops(run_kops, checking, contexts):
    """Run kops as the super user."""
    contexts(checking=checking.sandbox.context())
    return lambda *arguments: run_kops(*arguments, "-c", "checking")


@pytest.fixture
def folder(tmp_path):
    """Write a folder; call it with what some of its files have instead, and what the manifest says."""

    def write(manifest, **instead):
        for name, documents in {**FILES, **instead}.items():
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
        (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"version": 1, **manifest}))
        return tmp_path

    return write


def exported(kops, place):
    kops("cluster", "export", place).ok()
    return {file.stem: file.read_text() for file in place.glob("*.yaml") if file.stem != "manifest"}


def test_a_folder_makes_an_empty_cluster_like_another_and_is_undone_and_pruned(kops, checking, folder, tmp_path):
    admin = AdminClient(checking.client)
    before = exported(kops, tmp_path / "before")
    assert before.keys() == {"brokers", "users"}, "an empty cluster"
    made = folder({})
    dry = kops("cluster", "apply", made, "--dry-run", "-o", "json").ok().json
    cannot = [item for item in dry["items"] if item["action"] == "cannot"]
    assert [item["target"] for item in cannot] == [f"user {USER}"]
    assert "kops users create shop-a --mechanism scram-sha-256 --iterations 5000" in cannot[0]["reason"]
    assert admin.describe_acls(ANY).result(HANG_SECONDS) == []
    done = kops("cluster", "apply", made, "--yes", "-o", "json").ok().json
    assert {item["status"] for item in done["items"] if item["target"] != f"user {USER}"} <= {"done", "unchanged"}
    found = {
        (acl.principal, acl.name, acl.operation.name, acl.permission_type.name) for acl in admin.describe_acls(ANY).result(HANG_SECONDS)
    }
    assert found == {
        ("User:shop-a", "shop-", "READ", "ALLOW"),
        ("User:shop-a", "shop-", "WRITE", "ALLOW"),
        ("User:shop-a", "shop-secret", "READ", "DENY"),
        ("User:shop-b", "kafka-cluster", "DESCRIBE", "ALLOW"),
    }
    one = ConfigResource(ConfigResource.Type.BROKER, "1")
    assert admin.describe_configs([one])[one].result(HANG_SECONDS)["log.retention.ms"].value == "3600000"
    left = kops("cluster", "diff", made, "-o", "json")
    assert (left.code, [row["target"] for row in left.json]) == (1, [f"user {USER}"])
    secret = tmp_path / "secret"
    secret.write_text("hush-4711\n")
    kops("users", "create", "shop-a", "--mechanism", "scram-sha-256", "--iterations", "5000", "--password-file", secret, "--yes").ok()
    assert kops("cluster", "diff", made).code == 0
    first = exported(kops, tmp_path / "first")
    assert {name: list(yaml.safe_load_all(text)) for name, text in first.items()} == FILES

    kops("undo", done["journal_id"], "--yes", "--confirm", "checking").ok()
    undone = exported(kops, tmp_path / "undone")
    assert undone["brokers"] == before["brokers"]
    assert undone.keys() == {"brokers", "users"}
    kops("cluster", "apply", tmp_path / "first", "--yes").ok()
    assert exported(kops, tmp_path / "second") == first

    kept = {name: [documents[0]] for name, documents in FILES.items() if name in ("acls", "brokers", "users")}
    owns = {
        "acls": ["User:shop-*"],
        "brokers": ["1"],
        "client-metrics": ["shop-*"],
        "groups": ["shop-*"],
        "quotas": ["user shop-*", "ip 10.0.0.1"],
        "users": ["shop-*"],
    }
    kept |= {"quotas": [{"user": "shop-a", "defaults": ["client-id"], "quotas": {"consumer_byte_rate": 1000}}]}
    owned = folder({"owner": "shop", "owns": owns}, **kept)
    for name in ("groups", "client-metrics"):
        (owned / f"{name}.yaml").unlink()
    assert kops("cluster", "diff", owned).code == 0
    assert kops("cluster", "apply", owned, "--prune", "--confirm", "checking").ok()
    pruned = {name: list(yaml.safe_load_all(text)) for name, text in exported(kops, tmp_path / "pruned").items()}
    assert pruned == {"topics": FILES["topics"], **kept, "quotas": [FILES["quotas"][0], *kept["quotas"]]}


@pytest.mark.parametrize(
    ("name", "documents", "code", "said"),
    [
        ("brokers", [{"broker": "1", "config": {"log.cleaner.backof.ms": "1"}}], 2, "did you mean log.cleaner.backoff.ms"),
        ("brokers", [{"broker": "1", "config": {"log.cleaner.backoff.ms": "soon"}}], 2, "brokers.yaml: "),
        ("brokers", [{"broker": "1", "config": {"log.dirs": "/tmp"}}], 5, "log.dirs cannot be changed while a broker runs"),
        ("groups", [{"name": "g", "config": {"consumer.session.timeout": "1"}}], 2, "groups.yaml: config"),
        ("client-metrics", [{"name": "m", "config": {"match": "client=a"}}], 2, "client-metrics.yaml: "),
        ("acls", [{"principal": "shop-a", "allow": [{"resource": "topic"}]}], 2, "acls.yaml: allow[0].name is missing"),
    ],
)
def test_what_brokers_would_not_take_is_refused_before_anything_is_changed(kops, tmp_path, name, documents, code, said):
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(documents))
    refused = kops("cluster", "apply", tmp_path, "--yes")
    assert (refused.code, said in refused.err) == (code, True), refused.err
