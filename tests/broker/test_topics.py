"""``kops topics`` against a real broker; what it makes is read back with Apache's own tool."""

import re
import subprocess
import time

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from kops.core.durations import duration_text
from kops.core.errors import UsageProblem
from kops.core.topics.settings import canonical
from kops.gateways.kafka import Kafka
from support.kafka import VERSION
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import java_command
from support.topics import body_of, commit

pytestmark = pytest.mark.broker


def test_create_as_the_issue_writes_it_and_read_back_with_apaches_tool(topics, broker, unique, kafka_jar_files):
    name = unique()
    topics("create", name, "--partitions", "6", "--replication-factor", "1", "--compacted", "--expire", "7d", "--yes").ok()
    command = [*java_command("org.apache.kafka.tools.TopicCommand"), "--bootstrap-server", broker.bootstrap_servers, "--describe"]
    apache = subprocess.run([*command, "--topic", name], capture_output=True, text=True, check=True, timeout=HANG_SECONDS).stdout
    headline = apache.splitlines()[0]
    assert re.search(r"PartitionCount:\s*6\b", headline)
    assert re.search(r"ReplicationFactor:\s*1\b", headline)
    configs = headline.split("Configs:")[1].strip()
    assert "cleanup.policy=compact,delete" in configs
    assert "retention.ms=604800000" in configs
    body = body_of(topics, name)
    assert re.search(r"TopicId:\s*(\S+)", headline).group(1) == body["topic_id"]
    assert len(body["partitions"]) == 6
    assert body["partitions"][0] == {
        "partition": 0,
        "leader": body["partitions"][0]["leader"],
        "replicas": [body["partitions"][0]["leader"]],
        "in_sync_replicas": [body["partitions"][0]["leader"]],
        "earliest_local_offset": None,
        "latest_tiered_offset": None,
    }
    own = {setting["name"]: setting["value"] for setting in body["settings"] if setting["source"] == "topic"}
    assert own == {"cleanup.policy": "compact,delete", "retention.ms": "604800000"}


def retention_of(admin, topic):
    """Return what the broker says: the shared one may be anybody's, with its own defaults."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(HANG_SECONDS)["retention.ms"].value


def test_the_plan_is_effective_and_a_dry_run_creates_nothing(topics, topic, unique, admin, home):
    name = unique()
    plan = topics("create", name, "--compacted", "--dry-run", "-o", "json").ok().json
    assert plan["operation"] == "topics.create"
    after = plan["items"][0]["after"]
    assert after["partitions"] >= 1
    assert after["replication_factor"] >= 1
    assert after["settings"] == {"cleanup.policy": "compact"}
    assert after["broker_defaults"]["retention.ms"] == retention_of(admin, topic())
    assert "cleanup.policy" not in after["broker_defaults"]
    assert any("compaction needs a key" in warning for warning in plan["warnings"])
    assert name not in admin.list_topics(timeout=HANG_SECONDS).topics
    assert not (home / "state" / "kops" / "journal").exists()


def test_many_topics_are_created_like_another(topics, unique):
    model, one, two = unique("model"), unique("one"), unique("two")
    topics("create", model, "--partitions", "3", "--config", "retention.ms=3600000", "--config", "segment.ms=60000", "--yes").ok()
    result = topics("create", one, two, "--like", model, "--partitions", "2", "--compacted", "--yes", "-o", "json").ok().json
    assert [(item["target"], item["status"]) for item in result["items"]] == [(one, "done"), (two, "done")]
    for name in (one, two):
        body = body_of(topics, name)
        assert len(body["partitions"]) == 2
        own = {setting["name"]: setting["value"] for setting in body["settings"] if setting["source"] == "topic"}
        assert own == {"cleanup.policy": "compact", "retention.ms": "3600000", "segment.ms": "60000"}


def test_a_topic_that_exists_is_refused_and_the_others_are_not_created(topics, topic, unique, admin):
    there, new = topic(), unique("new")
    refused = topics("create", new, there, "--yes", "-o", "json")
    assert refused.code == 5
    assert f'"topics": ["{there}"]' in refused.err
    assert new not in admin.list_topics(timeout=HANG_SECONDS).topics


def test_if_not_exists_says_where_an_existing_topic_differs(topics, topic, unique):
    there, new = topic(partitions=2, config={"retention.ms": "604800000"}), unique("new")
    done = topics("create", new, there, "--partitions", "3", "--config", "retention.ms=5000", "--if-not-exists", "--yes").ok()
    assert f"{there} exists and is left unchanged, but differs: 2 partitions, not 3; retention.ms is 604800000, not 5000" in done.err
    assert len(body_of(topics, there)["partitions"]) == 2
    assert len(body_of(topics, new)["partitions"]) == 3
    again = topics("create", new, "--partitions", "3", "--if-not-exists", "-o", "json").ok()
    assert again.json == {"version": 1, "status": "unchanged", "items": [{"target": new, "status": "unchanged"}], "errors": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ("bad name",),
        ("x" * 250,),
        ("..",),
        ("a.b", "a_b"),
        ("t", "--config", "retenton.ms=5"),
        ("t", "--config", "retention.ms=7x"),
        ("t", "--config", "retention.ms"),
        ("t", "--config", "min.insync.replicas=0"),
        ("t", "--expire", "soon"),
        ("t", "--partitions", "0"),
        ("t", "--compacted", "--config", "cleanup.policy=delete"),
        (),
    ],
)
def test_what_is_wrong_by_itself_is_refused_without_any_broker(run_kops, arguments):
    refused = run_kops("topics", "create", *arguments, "--yes", "-B", "127.0.0.1:1")
    assert refused.code == 2, refused.err


def test_what_the_broker_refuses_is_refused_before_anything_is_made(topics, unique, admin):
    name = unique()
    refused = topics("create", name, "--replication-factor", "30", "--yes")
    assert refused.code == 2
    assert "replication factor of 30 cannot be reached" in refused.err
    assert topics("create", name, "--config", "quux.zzz=1", "--yes").code == 2
    assert name not in admin.list_topics(timeout=HANG_SECONDS).topics


def test_a_name_that_collides_with_an_existing_topic_is_refused(topics, unique, topic):
    suffix = unique().replace("-", "")
    topic(name=f"a.{suffix}")
    refused = topics("create", f"a_{suffix}", "--yes")
    assert refused.code == 5
    assert f"would collide with a.{suffix}" in refused.err


VALUES = [
    *(
        ("cleanup.policy", value)
        for value in ("", "compact", "compact,delete", " delete , compact", "[compact]", "compact,compact", "Compact")
    ),
    *(("retention.ms", value) for value in ("-1", "-2", " 7", "+7", "0x10", "", "9" * 20, "1e3", str(2**63 - 1))),
    *(("min.insync.replicas", value) for value in ("0", "5", str(2**31))),
    *(("preallocate", value) for value in ("yes", "TRUE", "false", "1")),
    *(("min.cleanable.dirty.ratio", value) for value in ("0", "1", "1.5", ".5", "-0.1", "half")),
    *(("compression.gzip.level", value) for value in ("-1", "0", "9", "10")),
    *(("compression.type", value) for value in ("zstd", "ZSTD", "none", "uncompressed")),
    *(("leader.replication.throttled.replicas", value) for value in ("*", "1:2", "0:1,1:2", "zz", "1")),
    *(("segment.bytes", value) for value in ("1048575", "1048576")),
]


def test_values_are_judged_as_the_broker_judges_them(admin, broker, topic, unique):
    """Of the settings that this broker has: ``compression.gzip.level``, for one, came with Kafka 3.8."""
    has = Kafka(broker.connection).topics.settings([topic()]).popitem()[1]

    def broker_takes(number, name, value):
        new = NewTopic(unique(f"v{number}"), 1, 1, config={name: value})
        return admin.create_topics([new], validate_only=True, request_timeout=HANG_SECONDS)[new.topic].exception(HANG_SECONDS) is None

    def kops_takes(name, value):
        try:
            canonical(name, value)
        except UsageProblem:
            return False
        return True

    judged = {pair: (kops_takes(*pair), broker_takes(number, *pair)) for number, pair in enumerate(VALUES) if pair[0] in has}
    unlike = {pair: verdicts for pair, verdicts in judged.items() if verdicts[0] != verdicts[1]}
    older = {("segment.bytes", "1048575"): (False, True)}  # brokers before 4.0 take less than KIP-1030 allows
    assert unlike == ({} if VERSION >= "4" else older)


def test_create_is_refused_when_the_topic_was_created_since_the_plan(topics, unique, run_kops, tmp_path):
    name, plan = unique(), tmp_path / "plan.json"
    topics("create", name, "--plan-out", plan).ok()
    topics("create", name, "--yes").ok()
    refused = run_kops("apply", plan, "--yes")
    assert refused.code == 5
    assert "created by another client" in refused.err


def test_some_fail_and_the_others_are_made(topics, unique, run_kops, tmp_path):
    """Two names that collide, one after the other in one saved plan: the broker takes the first only."""
    one, plan = unique("part"), tmp_path / "plan.json"
    topics("create", f"{one}.x", f"{one}-y", "--plan-out", plan).ok()
    topics("create", f"{one}_x", "--yes").ok()
    result = run_kops("apply", plan, "--yes", "-o", "json")
    assert result.code == 6
    assert result.json["status"] == "partial"
    assert {item["target"]: item["status"] for item in result.json["items"]} == {f"{one}.x": "failed", f"{one}-y": "done"}
    assert [error["target"] for error in result.json["errors"]] == [f"{one}.x"]
    assert "collides" in result.json["errors"][0]["message"]


def test_topics_are_listed_by_name_glob_and_expression(topics, topic, unique, admin):
    prefix = unique("l")
    a, b, c = (topic(name=f"{prefix}-{end}", partitions=number) for number, end in enumerate(("a", "b", "xc"), 1))
    assert topics("list", f"{prefix}-?", "-o", "name").ok().out.split() == [a, b]
    assert topics("list", f"{prefix}-.*[bc]", "--regex", "-o", "name").ok().out.split() == [b, c]
    row = topics("list", b, "-o", "json").ok().json[0]
    assert row == {
        "name": b,
        "partitions": 2,
        "replication_factor": 1,
        "under_replicated": 0,
        "offline": 0,
        "internal": False,
        "topic_id": row["topic_id"],
    }
    long = topics("list", b, "--long", "-o", "json").ok().json[0]
    assert (long["cleanup_policy"], long["retention_ms"], long["min_insync_replicas"]) == ("delete", int(retention_of(admin, b)), 1)
    listed = topics("list", b, "-l").ok().out.splitlines()
    assert listed[0].split("  ")[0] == "NAME"
    kept = "unlimited" if long["retention_ms"] < 0 else duration_text(long["retention_ms"])  # as the broker's default is
    assert [line.split() for line in listed[1:]] == [[b, "2", "1", "delete", kept, "1", "0", "B", "0"]]
    assert topics("list", f"{prefix}-nothing-*", "-o", "json").ok().json == []
    assert topics("list", f"{prefix}-nothing").code == 1
    assert topics("list", "(", "--regex").code == 2


def test_sizes_and_offsets_in_their_order(topics, topic, cluster, unique):
    small, large, none = (topic(name=f"{name}-{unique()}", partitions=2) for name in "slz")
    at = int(time.time() * 1000)
    cluster.produce(small, [Record(b"k", b"v", at, partition=number % 2) for number in range(20)])
    cluster.produce(large, [Record(b"k", bytes(5000), at, partition=1) for _ in range(3)])
    listed = {order: topics("list", small, large, none, "--sort", order, "-o", "json").ok().json for order in ("size", "offsets")}
    assert [row["name"] for row in listed["size"]] == [large, small, none]
    assert [(row["name"], row["offsets"]) for row in listed["offsets"]] == [(small, 20), (large, 3), (none, 0)]
    described = topics("describe", small, large, none, "-o", "json").ok().json
    assert {row["name"]: row["size_bytes"] for row in listed["size"]} == {body["name"]: body["size_bytes"] for body in described}
    assert [row["name"] for row in topics("list", small, large, "--sort", "name", "-o", "json").ok().json] == sorted([small, large])


def test_the_brokers_own_topics_are_listed_on_demand(topics, topic, broker, unique, admin):
    group = unique("g")
    commit(broker, topic(), group, offset=0)  # makes __consumer_offsets
    assert "__consumer_offsets" not in topics("list", "-o", "name").ok().out.split()
    assert "__consumer_offsets" in topics("list", "--internal", "-o", "name").ok().out.split()
    assert topics("list", "__consumer_offsets", "-o", "json").ok().json[0]["internal"] is True
    admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)


def test_descriptions_are_tables_and_csv(topics, topic):
    name = topic(partitions=2, config={"retention.ms": "3600000"})
    text = topics("describe", "--topic", name).ok().out
    assert text.startswith(f"{name}: 2 partitions, replication factor 1, topic id ")
    assert re.search(r"retention\.ms\s+3600000 \(1h\)\s+topic", text)
    assert "segment.ms" not in text
    assert "segment.ms" in topics("describe", name, "--all-settings").ok().out
    lines = topics("describe", name, "-o", "csv").ok().out.splitlines()
    assert lines[0] == "name,partition,leader,replicas,in_sync_replicas"
    assert len(lines) == 3


def test_an_unknown_name_names_the_nearest(topics, topic):
    name = topic()
    missing = topics("describe", f"{name}x")
    assert missing.code == 1
    assert f"did you mean {name}?" in missing.err
