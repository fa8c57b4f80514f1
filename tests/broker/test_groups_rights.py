"""A cluster with ACLs: an error names the right that is missing, and on what, and what may be seen is still shown."""

import json
from dataclasses import replace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kops.config.connection import Secret
from kops.core.errors import AuthorizationFailed, TimedOut
from kops.core.models import CommittedOffset, NewRecord, TopicPartition
from kops.core.models import NewTopic as Topic
from kops.core.settings import own_settings
from kops.gateways.kafka import Kafka
from kops.sandbox import brokers
from kops.sandbox.model import USERNAME
from support.patience import HANG_SECONDS
from support.programs import Program
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{USERNAME};User:CN=localhost",  # the sandbox's own user, and the controllers' certificate
}
SEEN, HIDDEN = "seen", "hidden"
PLACES = {TopicPartition(SEEN, 0): CommittedOffset(0), TopicPartition(HIDDEN, 0): CommittedOffset(0)}


@pytest.fixture(scope="module")
def secured(own_brokers):
    """A broker that checks every right, with two topics, a group in each, and a group in both."""
    with pytest.MonkeyPatch.context() as patch:
        plain = brokers.server_settings
        patch.setattr(brokers, "server_settings", lambda *at, **options: plain(*at, **options) | AUTHORIZER)
        own = own_brokers(security="sasl-ssl")
        admin = AdminClient(own.client)
        for made in admin.create_topics([NewTopic(SEEN, 1), NewTopic(HIDDEN, 1)], operation_timeout=HANG_SECONDS).values():
            made.result(HANG_SECONDS)
        starting = Kafka(replace(own.connection, timeout=5.0))  # it is still electing its coordinators
        for group in ("billing", "other"):
            wait_for("the commit", lambda group=group: _commits(starting, group))
        for name in (SEEN, HIDDEN):
            Kafka(own.connection).produce(name, [_record()])
        yield own


def _commits(kafka, group):
    try:
        return set(kafka.groups.commit(group, PLACES).values()) == {None}
    except TimedOut:
        return False


def _record():
    from kops.core.models import NewRecord

    return NewRecord(None, b"x", partition=0)


@pytest.fixture
def as_user(secured, unique, home, run_kops):
    """Run kops as a new user who has only these rights: ``as_user((ResourceType.GROUP, "billing", AclOperation.DESCRIBE), ...)``."""

    def make(*rights):
        admin, user = AdminClient(secured.client), unique("u")[-40:]
        secret = UserScramCredentialUpsertion(user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret")
        admin.alter_user_scram_credentials([secret])[user].result(HANG_SECONDS)
        bindings = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, operation in rights
        ]
        for done in admin.create_acls(bindings).values() if bindings else ():
            done.result(HANG_SECONDS)
        connection = replace(secured.connection, username=user, password=Secret("the test", lambda: "secret"), timeout=10.0)
        wait_for("the new user", lambda: _works(connection))
        settings = {**secured.sandbox.context(), "username": user, "password_file": str(home / "password")}
        (home / "password").touch(mode=0o600)
        (home / "password").write_text("secret")
        config = home / "config" / "kops" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("[contexts.user]\n" + "".join(f"{key} = {value!r}\n" for key, value in settings.items()))
        return lambda *arguments: run_kops(*arguments, "-c", "user")

    return make


def _works(connection):
    try:
        return Kafka(connection).cluster()
    except Exception:
        return False


DESCRIBE, READ, DELETE = AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DELETE
BILLING = (ResourceType.GROUP, "billing", DESCRIBE)
TOPIC = (ResourceType.TOPIC, SEEN, DESCRIBE)


def test_a_group_that_may_not_be_described_is_no_typo(as_user):
    kops = as_user()
    assert kops("groups", "list", "-o", "json").ok().json == []  # the brokers leave out what may not be seen
    for command in (["groups", "describe", "billing"], ["groups", "lag", "billing"]):
        refused = kops(*command)
        assert refused.code == AuthorizationFailed.exit_code
        assert "needs DESCRIBE on group billing; ask for that ACL" in refused.err
    body = kops("groups", "lag", "billing", "-o", "json")
    assert '"needs": "DESCRIBE on group billing"' in body.err


def test_lag_shows_what_may_be_seen(as_user):
    kops = as_user(BILLING, TOPIC)
    assert [row["group"] for row in kops("groups", "list", "-o", "json").ok().json] == ["billing"]
    shown = kops("groups", "lag", "billing", "-o", "json")
    assert shown.code in (0, 6), shown.err
    rows = {row["topic"]: row for row in shown.json}
    assert rows[SEEN]["lag"] == 1
    assert (rows[SEEN]["time_lag_ms"], rows[SEEN]["note"]) == (None, f"lacks READ on topic {SEEN}")
    assert HIDDEN not in rows or rows[HIDDEN]["note"] == f"lacks DESCRIBE on topic {HIDDEN}"


def test_a_diagnosis_says_what_it_could_not_look_at(as_user):
    kops = as_user(BILLING, (ResourceType.TOPIC, SEEN, READ), (ResourceType.TOPIC, HIDDEN, READ), (ResourceType.GROUP, "billing", READ))
    shown = kops("diagnose", "billing", "--sample", "0s")
    assert "looked at: 1 group" in shown.out
    assert "commits of the last" not in shown.out
    assert "not looked at: commit history: lacks READ on topic __consumer_offsets" in shown.out
    body = kops("diagnose", "billing", "--sample", "0s", "-o", "json")
    assert (body.code, "commit history" in {gap["check"] for gap in body.json["not_checked"]}) == (6, True)


def test_with_every_right_it_is_whole(as_user):
    kops = as_user(BILLING, (ResourceType.TOPIC, SEEN, READ), (ResourceType.TOPIC, HIDDEN, READ), (ResourceType.GROUP, "billing", READ))
    rows = kops("groups", "lag", "billing", "-o", "json").ok().json
    assert [(row["topic"], row["lag"], row["note"]) for row in rows] == [(HIDDEN, 1, ""), (SEEN, 1, "")]
    assert all(row["time_lag_ms"] is not None for row in rows)


def test_settings_that_may_not_be_seen_hide_no_others(as_user):
    config = (ResourceType.TOPIC, SEEN, AclOperation.DESCRIBE_CONFIGS)
    kops = as_user(TOPIC, config, (ResourceType.TOPIC, HIDDEN, DESCRIBE))
    listed = kops("topics", "list", "--long", "-o", "json")
    rows = {row["name"]: row["retention_ms"] for row in listed.json}
    lacking = f"lacks DESCRIBE_CONFIGS on topic {HIDDEN}"
    assert (listed.code, rows, lacking in listed.err) == (6, {SEEN: -1, HIDDEN: None}, True), listed.err
    described = kops("topics", "describe", "*", "--brief", "-o", "json")
    settings = {body["name"]: body["settings"] is None for body in described.json}
    assert (described.code, settings, lacking in described.err) == (6, {SEEN: False, HIDDEN: True}, True), described.err
    health = kops("cluster", "health", "-o", "json")
    assert f"settings of {HIDDEN}" in {gap["check"] for gap in health.json["not_checked"]}, health.out


def test_diagnose_says_of_which_records_it_does_not_know_the_age(as_user):
    found = as_user(BILLING, TOPIC)("diagnose", "billing", "--sample", "0s", "-o", "json").json
    (gap,) = [one for one in found["not_checked"] if one["check"] == "lag in time"]
    said = f"not known in 1 of 1 place where groups have something to read, such as {SEEN}:0: lacks READ on topic {SEEN}"
    assert gap["error"]["message"] == said


def test_changes_name_the_right_too(as_user, secured):
    kops = as_user(BILLING, TOPIC, (ResourceType.TOPIC, HIDDEN, DESCRIBE))
    deleted = kops("groups", "delete", "billing", "--confirm", "billing")
    assert deleted.code == 1
    assert "lacks DELETE on group billing" in deleted.out
    assert "to undo:" not in deleted.err
    assert "billing" in Kafka(secured.connection).groups.ids()
    moved = kops("offsets", "reset", "billing", "--topic", SEEN, "--to-latest", "--yes", "-o", "json")
    assert moved.code != 0
    assert "lacks READ on group billing" in moved.err + moved.out
    assert Kafka(secured.connection).groups.committed(["billing"])["billing"] == PLACES


def test_a_deletion_says_which_offsets_it_could_not_see(as_user):
    rights = ((ResourceType.GROUP, "other", DELETE), TOPIC)
    cluster, hidden = (ResourceType.BROKER, "kafka-cluster", DESCRIBE), (ResourceType.TOPIC, HIDDEN, DESCRIBE)
    asked, begins = ("groups", "delete", "other", "--dry-run"), "undo does not restore what the groups committed in"
    unknown = as_user(*rights)(*asked).ok()
    assert f"{begins} topics that may not be described" in unknown.out + unknown.err
    assert "not known: lacks DESCRIBE on the cluster" in unknown.out + unknown.err
    known = as_user(*rights, cluster)(*asked).ok()
    assert f"{begins} {HIDDEN}: not looked at (lacks DESCRIBE on topic {HIDDEN})" in known.out + known.err
    whole = as_user(*rights, cluster, hidden)(*asked).ok()
    assert begins not in whole.out + whole.err


def test_what_looks_at_every_topic_says_which_it_did_not_see(as_user, tmp_path):
    rights = [(ResourceType.BROKER, "kafka-cluster", operation) for operation in (DESCRIBE, AclOperation.DESCRIBE_CONFIGS)]
    kops = as_user(*rights, TOPIC, (ResourceType.TOPIC, "__consumer_offsets", DESCRIBE))
    for command in (["cluster", "health"], ["brokers", "list"], ["diagnose", "--sample", "0s"]):
        shown = kops(*command)
        said = shown.out + shown.err
        assert (f"topics {HIDDEN}: " in said, f"lacks DESCRIBE on topic {HIDDEN}" in said, shown.code) == (True, True, 6), (command, said)
    assert "healthy as far as could be seen" in kops("cluster", "health").out
    exported = kops("cluster", "export", tmp_path / "folder")
    said = f"topics not exported: {HIDDEN} may not be described (lacks DESCRIBE on topic {HIDDEN})"
    assert (exported.code, said in exported.err, (tmp_path / "folder/topics.yaml").exists()) == (6, True, False), exported.err


def test_what_is_about_every_topic_names_those_that_may_not_be_described(as_user):
    cluster = ((ResourceType.BROKER, "kafka-cluster", DESCRIBE), (ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER))
    kops = as_user(*cluster, TOPIC, (ResourceType.TOPIC, HIDDEN, DESCRIBE))
    refused = kops("brokers", "demote", 1, "--dry-run")
    assert "__consumer_offsets may not be described, and would stay where they are" in refused.err
    assert "needs DESCRIBE on topic __consumer_offsets" in refused.err
    assert refused.code == AuthorizationFailed.exit_code
    kops = as_user(*cluster, (ResourceType.TOPIC, "*", DESCRIBE))
    assert "nothing has to move" in kops("brokers", "demote", 1, "--dry-run").ok().err


def test_a_redrive_that_cannot_remember_what_it_sent(as_user):
    kops = as_user((ResourceType.TOPIC, SEEN, READ))
    refused = kops("replay", "redrive", SEEN, "--dry-run")
    said = ("does not expire", "kops-progress", "kops topics create kops-progress --partitions 1 --config cleanup.policy=compact")
    assert (refused.code, [part in refused.err for part in said]) == (5, [True] * 3), refused.err


CREATE, WRITE, CONFIGS = AclOperation.CREATE, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS
SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": "20000", "min.insync.replicas": "1", "segment.ms": "70000000"}


@pytest.fixture
def counted(secured, unique, tmp_path):
    """An application that was stopped, whose changelog has a wrong value: its program, the rights that a rebuild needs, its state file."""
    program = Program("count", "long", value="bytes").named(unique())
    kafka = Kafka(secured.connection)
    made = kafka.topics.create([Topic(program.topic, 1, 1), Topic(program.changelog, 2, 1, SETTINGS)])
    assert set(made.values()) == {None}
    kafka.produce(program.topic, [NewRecord(b"laptop", b"x", partition=0)])
    kafka.produce(program.changelog, [NewRecord(b"laptop", b"\x00" * 8, partition=0)])
    kafka.groups.commit(program.application, {TopicPartition(program.topic, 0): CommittedOffset(1)})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    rights = [(ResourceType.GROUP, program.application, READ), (ResourceType.TOPIC, program.topic, READ)]
    rights += [(ResourceType.TOPIC, program.topic, CONFIGS)]
    rights += [(ResourceType.TOPIC, program.changelog, one) for one in (READ, CONFIGS)]
    return program, rights, file


@pytest.mark.spark
def test_no_changelog_is_deleted_that_could_not_be_created_again(as_user, secured, counted, monkeypatch):
    program, rights, file = counted
    changelog, kafka = program.changelog, Kafka(secured.connection)
    command = ("state", "rebuild", file, "--damaged", "totals", "--write", "replace", "--confirm", changelog)
    may = {right: (ResourceType.TOPIC, changelog, right) for right in (CREATE, WRITE, DELETE)}
    before = kafka.topics.existing([changelog])
    for granted, said in (
        ([may[WRITE]], "lacks DELETE on topic"),
        ([may[WRITE], may[DELETE]], f"CREATE on topic {changelog}"),
        (list(may.values()), f"grant CREATE on topics that begin with {changelog}"),
    ):
        kops = as_user(*rights, *granted)
        refused = kops(*command)
        assert (refused.code, said in refused.err, "could not be created again" in refused.err) == (5, True, True), refused
    assert kafka.topics.existing([changelog]) == before
    assert kops("journal", "list", "-o", "json").ok().json == []

    kops = as_user(*rights, may[WRITE], may[DELETE])
    with monkeypatch.context() as patch:  # as if the right had been there until the topic was gone
        for module in ("kops.operations.state.change", "kops.operations.state.replace"):
            patch.setattr(f"{module}.refuse_unless_recreatable", lambda *_: None)
        broken = kops(*command, "-o", "json")
    assert (broken.code, broken.json["status"]) == (6, "partial"), broken
    assert f"{changelog} is deleted, and was not created again" in broken.json["errors"][0]["message"]
    assert kafka.topics.existing([changelog]) == {}
    assert [row["id"] for row in kops("journal", "list", "--unfinished", "-o", "json").ok().json] == [broken.json["journal_id"]]

    kops = as_user(*rights, *may.values())  # now it is
    kops(*command).ok()
    assert own_settings(kafka.topics.settings([changelog])[changelog]) == SETTINGS
    kops("state", "verify", file).ok()
    assert kops("journal", "list", "--unfinished", "-o", "json").ok().json == []

    kops = as_user(*rights, *may.values(), (ResourceType.TOPIC, "*", CREATE))
    kops("undo", "last", "--confirm", program.application).ok()
    (there,) = kafka.topics.existing([changelog]).values()
    assert len(there.partitions) == 2
    assert own_settings(kafka.topics.settings([changelog])[changelog]) == SETTINGS
    assert kops("state", "verify", file).code != 0, "what it held at first is wrong"


def test_producing_names_the_right_that_is_missing(as_user):
    kops = as_user(TOPIC)
    refused = kops("records", "produce", SEEN, "--value", "x")
    assert refused.code == 1, refused.err
    assert f"lacks WRITE on topic {SEEN}" in refused.err
    assert "bug:" not in refused.err


def test_reading_as_a_group_names_the_right_that_is_missing(as_user):
    kops = as_user((ResourceType.TOPIC, SEEN, READ), (ResourceType.GROUP, "mine", DESCRIBE))
    refused = kops("records", "consume", SEEN, "--group", "mine", "--limit", "1")
    assert (refused.code, "lacks READ on group mine" in refused.err, "others may be members" in refused.err) == (1, True, False), (
        refused.err
    )
