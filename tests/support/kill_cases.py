"""A case for each mutation that kops can make, to be killed at every step: what is there before, after, and after its undo.

``CASES`` has one for every name of ``kops.operations.protocol.registry.MUTATIONS`` but those of ``UNKILLED``;
``tests/unit/project/test_kill_cases.py`` sees to that.
"""

import json
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, ResourceType
from kafka import KafkaAdminClient

from kops.core.models import TopicPartition
from support.apache_tools import ApacheTools
from support.connect import FILE_SINK
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.streams import compacted_view
from support.streams_apps import wait_for

START = 1_700_000_000_000


@dataclass
class Parts:
    """What a case is made of.

    :param name: a beginning of names; what begins so is deleted after the test
    :param kops: runs kops in this process, and expects it to succeed
    :param fixture: returns a fixture by its name
    """

    cluster: Any
    name: str
    folder: Path
    kops: Callable[..., Any]
    fixture: Callable[[str], Any]

    def topics(self, *names: str, partitions: int = 2, records: int = 0, **config: str) -> list[str]:
        made = [f"{self.name}-{name}" for name in names]
        self.cluster.create_all(dict.fromkeys(made, partitions), {key.replace("_", "."): value for key, value in config.items()})
        if records:
            content = [Record(b"k%d" % at, b"v%d" % at, START + at, (), at % partitions) for at in range(records)]
            self.cluster.produce_all(dict.fromkeys(made, content))
        return made

    def until_it_ends(self, context: AbstractContextManager[Any]) -> Any:
        """Enter a context that the test leaves at its end."""
        stack = ExitStack()
        self.fixture("request").addfinalizer(stack.close)
        return stack.enter_context(context)

    def sizes(self) -> dict[str, int]:
        """Return the partitions of the topics, by the rest of the name."""
        return {topic.removeprefix(f"{self.name}-"): count for topic, count in self.cluster.topics(self.name).items()}

    def committed(self, *groups: str) -> dict[str, dict[str, int]]:
        found = {group: self.cluster.committed(f"{self.name}-{group}") for group in groups}
        own = f"{self.name}-"
        return {
            group: {f"{topic.removeprefix(own)}:{at}": offset for (topic, at), offset in offsets.items()}
            for group, offsets in found.items()
        }

    def setting(self, topic: str, name: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, f"{self.name}-{topic}")
        return self.cluster.admin.describe_configs([resource])[resource].result(HANG_SECONDS)[name].value


@dataclass
class Made:
    """A prepared case.

    :param command: changes something
    :param look: returns what there is, by a client that is not kops
    :param confirm: what plans may ask for
    :param asks: whether the command asks; what follows may ask all the same
    """

    command: Sequence[object]
    look: Callable[[], Any]
    confirm: Sequence[str] = ()
    asks: bool = True


@dataclass
class Case:
    """A mutation.

    :param undone: what there is after its undo; None: it cannot be undone, unless it ``creates``
    :param creates: what there is before and after its undo is None: nothing
    :param finishes: whether `journal finish` plans the rest
    :param repeats: whether the same command does everything again, whatever was done
    :param refers: whether the same command may refuse, and refer to `replay resume`
    :param needs: fixtures that it needs besides the broker
    :param variant: what tells it from another case of the operation
    """

    operation: str
    prepare: Callable[[Parts], Made]
    before: Any
    after: Any
    undone: Any
    finishes: bool = True
    repeats: bool = False
    creates: bool = False
    refers: bool = False
    needs: tuple[str, ...] = ()
    variant: str = ""

    @property
    def can_be_undone(self) -> bool:
        return self.undone is not None or self.creates

    @property
    def lane(self) -> str:
        return "spark" if "spark" in self.needs else "connect" if "connect_workers" in self.needs else "broker"


def _create(parts: Parts) -> Made:
    a, b = f"{parts.name}-a", f"{parts.name}-b"
    return Made(("topics", "create", a, b, "--partitions", "2", "--if-not-exists", "--yes"), parts.sizes, (a, b, "2 topics"))


def _delete(parts: Parts) -> Made:
    a, b = parts.topics("a", "b")
    return Made(("topics", "delete", a, b, "--if-exists"), parts.sizes, (a, b, "2 topics"))


def _alter(parts: Parts) -> Made:
    topics = parts.topics("a", "b", retention_ms="1000000")
    command = ("topics", "alter", *topics, "--config", "retention.ms=2000000", "--yes")
    return Made(command, lambda: [parts.setting(topic, "retention.ms") for topic in "ab"])


def _apply_folder(parts: Parts) -> Made:
    """A topic to grow, one to create, one to delete, and a quota: two plans of one mutation, with one of another between them."""
    parts.topics("grown", "gone")
    folder = parts.folder / "cluster"
    folder.mkdir()
    documents = [f"name: {parts.name}-grown\npartitions: 3\n", f"name: {parts.name}-new\npartitions: 2\n"]
    (folder / "topics.yaml").write_text("---\n".join(documents))
    (folder / "manifest.yaml").write_text(f"owner: {parts.name}\nowns: {{topics: [{parts.name}-*]}}\n")
    (folder / "quotas.yaml").write_text(f"user: {parts.name}\nquotas: {{consumer_byte_rate: 5MB}}\n")

    def look() -> tuple[dict[str, int], list[float]]:
        rows = parts.kops("quotas", "list", "--user", parts.name, "-o", "json").json
        return parts.sizes(), [row["value"] for row in rows]

    return Made(("cluster", "apply", folder, "--prune"), look, (parts.cluster.servers,))


def _settings(parts: Parts) -> Made:
    resource = ConfigResource(ResourceType.BROKER, str(min(parts.cluster.admin.list_topics(timeout=HANG_SECONDS).brokers)))

    def look() -> str:
        return parts.cluster.admin.describe_configs([resource])[resource].result(HANG_SECONDS)["log.cleaner.backoff.ms"].value

    return Made(("brokers", "alter", resource.name, "--config", "log.cleaner.backoff.ms=14000", "--yes"), look)


def _truncate(parts: Parts) -> Made:
    (a,) = parts.topics("a", records=20)
    return Made(("topics", "truncate", a, "--to", "6"), lambda: [low for low, _ in parts.cluster.ends(a).values()], (a,))


def _two_groups(parts: Parts) -> tuple[str, ...]:
    (topic,) = parts.topics("t", records=20)
    groups = (f"{parts.name}-g", f"{parts.name}-h")
    for group in groups:
        parts.cluster.commit(group, {(topic, 0): 7, (topic, 1): 5})
    return (topic, *groups)


def _delete_groups(parts: Parts) -> Made:
    _, one, other = _two_groups(parts)
    return Made(("groups", "delete", f"{parts.name}-[gh]"), lambda: parts.committed("g", "h"), (one, other, "2 groups"))


def _move(parts: Parts) -> Made:
    _, one, _ = _two_groups(parts)
    return Made(("offsets", "reset", one, "--all-topics", "--to-earliest", "--yes"), lambda: parts.committed("g"))


def _move_many(parts: Parts) -> Made:
    _two_groups(parts)
    return Made(("offsets", "reset", f"{parts.name}-[gh]", "--all-topics", "--to-earliest", "--yes"), lambda: parts.committed("g", "h"))


def _delete_offsets(parts: Parts) -> Made:
    topic, one, _ = _two_groups(parts)
    return Made(("offsets", "delete", one, "--topic", f"{topic}:0"), lambda: parts.committed("g"), (one,))


def _consume(parts: Parts) -> Made:
    topic, one, _ = _two_groups(parts)
    return Made(("records", "consume", topic, "--group", one), lambda: parts.committed("g"), asks=False)


def _produce(parts: Parts) -> Made:
    (topic,) = parts.topics("t", partitions=1)
    command = ("records", "produce", topic, "--key", "k", "--value", "v")
    return Made(command, lambda: [high for _, high in parts.cluster.ends(topic).values()], asks=False)


def _schema(parts: Parts) -> tuple[Sequence[object], Callable[[], Any], str]:
    import requests

    url, subject = parts.fixture("registry").url, f"{parts.name}-value"
    file = parts.folder / "order.avsc"
    file.write_text(json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))

    def look() -> list[int]:
        answer = requests.get(f"{url}/subjects/{subject}/versions", timeout=HANG_SECONDS)
        return answer.json() if answer.status_code == 200 else []

    parts.fixture("monkeypatch").setenv("KOPS_REGISTRY_URL", url)
    return ("schemas", "register", subject, file, "--yes"), look, subject


def _delete_user(parts: Parts) -> Made:
    user = f"{parts.name}-user"
    (parts.folder / "password").write_text("secret")
    parts.kops("users", "create", user, "--password-file", parts.folder / "password", "--yes")

    def look() -> list[int]:
        found = parts.cluster.admin.describe_user_scram_credentials().result(HANG_SECONDS)
        return [one.iterations for name, each in found.items() if name == user for one in each.scram_credential_infos]

    return Made(("users", "delete", user), look, (user,))


def _quotas(parts: Parts) -> Made:
    entity = ("--user", f"{parts.name}-user")

    def look() -> dict[str, float]:
        return {row["key"]: row["value"] for row in parts.kops("quotas", "list", *entity, "-o", "json").json}

    return Made(("quotas", "set", *entity, "consumer_byte_rate=5MB", "request_percentage=40", "--yes"), look)


def _register(parts: Parts) -> Made:
    command, look, subject = _schema(parts)
    return Made(command, lambda: bool(look()), (subject,))


def _delete_subject(parts: Parts) -> Made:
    made = _register(parts)
    parts.kops(*made.command)
    subject = made.confirm[0]
    return Made(("schemas", "delete", subject), made.look, (subject,))


def _undelete(parts: Parts) -> Made:
    made = _delete_subject(parts)
    parts.kops(*made.command, "--confirm", *made.confirm)
    (entry,) = [row["id"] for row in parts.kops("journal", "list", "-o", "json").json if row["operation"] == "schemas.delete"]
    return Made(("undo", entry), made.look, made.confirm)


def _config(parts: Parts) -> Made:
    made = _register(parts)
    parts.kops(*made.command)
    subject = made.confirm[0]

    def look() -> str | None:
        rows = parts.kops("schemas", "config", subject, "-o", "json").json
        return rows[1]["compatibility"] if rows[1]["compatibility_own"] else None

    return Made(("schemas", "config", subject, "--compatibility", "FULL", "--yes"), look)


def _reset(parts: Parts) -> Made:
    name = f"{parts.name}-app"
    topics = parts.topics("input", "app-counts-changelog", records=20)
    parts.cluster.commit(name, {(topics[0], 0): 7, (topics[0], 1): 5})
    return Made(("streams", "reset", name), lambda: (parts.committed("app")["app"], sorted(parts.sizes())), (name,))


def _unregister(parts: Parts) -> Made:
    command, look, subject = _schema(parts)
    parts.kops(*command)
    register = parts.kops("journal", "show", "last", "-o", "json").json["id"]
    return Made(("undo", register, "--confirm", subject), lambda: bool(look()), (subject,))


def _connect_apply(parts: Parts) -> Made:
    (topic,) = parts.topics("t", partitions=1)
    names = [f"{parts.name}-a", f"{parts.name}-b"]
    file = parts.folder / "connectors.json"
    file.write_text(json.dumps([{"name": name, "config": _sink(parts, topic, name)} for name in names]))
    return Made(("connect", "apply", file, "--yes"), lambda: _connectors(parts), (*names, "2 connectors"))


def _connectors(parts: Parts) -> list[str]:
    """Return the connectors once two looks at every worker are alike: of several requests that were sent at once, some may be under way."""
    import requests

    workers = parts.fixture("connect_workers")
    looks: list[list[list[str] | None]] = []

    def alike() -> bool:
        answers = [requests.get(f"{url}/connectors", timeout=HANG_SECONDS) for url in workers.urls]
        names = [[name for name in answer.json() if name.startswith(parts.name)] if answer.ok else None for answer in answers]
        looks.append([None if some is None else sorted(name.removeprefix(parts.name) for name in some) for some in names])
        return len(looks) > 1 and None not in looks[-1] and looks[-2] == looks[-1] == [looks[-1][0]] * len(answers)

    wait_for("the connectors to stay as they are", alike)
    return looks[-1][0] or []


def _connect_apply_with_topics(parts: Parts) -> Made:
    name, topics = f"{parts.name}-a", [f"{parts.name}-{end}" for end in ("t", "dead")]
    dead = {"errors.deadletterqueue.topic.name": topics[1], "errors.deadletterqueue.topic.replication.factor": "1"}
    file = parts.folder / "connectors.json"
    file.write_text(json.dumps([{"name": name, "config": {**_sink(parts, topics[0], name), **dead}}]))

    def look() -> tuple[list[str], list[str]]:
        return _connectors(parts), sorted(parts.sizes())

    return Made(("connect", "apply", file, "--create-topics", "--yes"), look, (name, *topics, "2 topics"))


def _sink(parts: Parts, topic: str, name: str) -> dict[str, str]:
    return {"connector.class": FILE_SINK, "file": str(parts.folder / f"{name}.txt"), "topics": topic, "tasks.max": "1"}


def _one_sink(parts: Parts, state: str = "") -> tuple[Any, str, str]:
    workers = parts.fixture("connect_workers")
    (topic,) = parts.topics("t", partitions=1, records=10)
    name = f"{parts.name}-sink"
    workers.create(name, _sink(parts, topic, name))
    group = f"connect-{name}"
    wait_for("its offset to be committed", lambda: parts.cluster.committed(group) == {(topic, 0): 10})
    if state:
        workers.ask("PUT", f"/connectors/{name}/{state}")
        wait_for(f"{name} to {state}", lambda: workers.states(name) in (["STOPPED"], ["PAUSED"] * 2))
    return workers, name, topic


def _pause(parts: Parts) -> Made:
    workers, name, _ = _one_sink(parts)

    def look() -> str:
        wait_for("its tasks to be in one state", lambda: len(set(workers.states(name))) == 1)
        return workers.states(name)[0]

    return Made(("connect", "pause", name, "--yes"), look)


def _restart(parts: Parts) -> Made:
    workers, name, _ = _one_sink(parts)

    def look() -> list[str]:
        wait_for("it to run", lambda: workers.states(name) == ["RUNNING"] * 2)
        return workers.states(name)

    return Made(("connect", "restart", name, "--yes"), look)


def _connect_offsets(parts: Parts) -> Made:
    workers, name, topic = _one_sink(parts, "stop")

    def look() -> tuple[list[str], dict[str, int]]:
        return workers.states(name), {str(at): offset for (_, at), offset in parts.cluster.committed(f"connect-{name}").items()}

    return Made(("connect", "offsets", "alter", name, f"{topic}:0=7", "--yes"), look)


def _loggers(parts: Parts) -> Made:
    workers, name = parts.fixture("connect_workers"), f"kops.{parts.name}"

    def look() -> str:
        found = workers.ask("GET", "/admin/loggers")
        return found.get(name, found["root"])["level"]

    return Made(("connect", "loggers", "set", name, "DEBUG", "--yes"), look)


def _records(parts: Parts, topic: str) -> Callable[[], int | None]:
    return lambda: len(parts.cluster.read(topic)) if topic in parts.cluster.topics(topic) else None


def _replay(parts: Parts) -> Made:
    source, target = parts.topics("source", "target", records=0)
    _fill(parts, source)
    return Made(("replay", "run", source, "--to", target, "--yes"), _records(parts, target), (target,))


def _fill(parts: Parts, topic: str, *, value: bytes = b"v", headers: Sequence[tuple[str, bytes]] = (), by_key: bool = False) -> None:
    """Write a record for each of 20 keys, to partitions in turn or by the default partitioner."""
    parts.cluster.produce(topic, [Record(b"k%d" % at, value, START + at, tuple(headers), None if by_key else at % 2) for at in range(20)])


def _redrive(parts: Parts) -> Made:
    origin, queue = parts.topics("origin", "queue")
    prefix = "__connect.errors."
    _fill(parts, queue, headers=((f"{prefix}topic", origin.encode()), (f"{prefix}partition", b"1"), (f"{prefix}offset", b"1")))
    return Made(("replay", "redrive", queue, "--to-topics", origin, "--yes"), _records(parts, origin))


def _restore(parts: Parts) -> Made:
    source, target, path = f"{parts.name}-source", f"{parts.name}-target", parts.folder / "archive"
    parts.topics("source")
    _fill(parts, source)
    parts.kops("replay", "archive", source, "--to", path)
    return Made(("replay", "restore", path, "--to", target, "--yes"), _records(parts, target), (target,))


def _replay_undo(parts: Parts) -> Made:
    made = _replay(parts)
    parts.kops(*made.command)
    replay = parts.kops("journal", "show", "last", "-o", "json").json["id"]
    return Made(("undo", replay, "--confirm", made.confirm[0]), made.look, made.confirm)


def _program(parts: Parts, changelog: int, *, by_key: bool = False) -> tuple[Program, Path]:
    """Make an application that counted 20 keys once, whose changelog is empty.

    :param changelog: its number of partitions
    """
    program = COUNT.named(parts.name)
    parts.cluster.create(program.topic, 2)
    _fill(parts, program.topic, by_key=by_key)
    parts.cluster.commit(program.application, {(program.topic, at): high for at, (_, high) in parts.cluster.ends(program.topic).items()})
    parts.cluster.create(program.changelog, changelog, {"cleanup.policy": "compact"})
    file = parts.folder / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    return program, file


def _state(parts: Parts, changelog: str) -> Callable[[], int | None]:
    """Count the keys of a changelog that have the right value; a wrong one makes it negative."""

    def look() -> int | None:
        if changelog not in parts.cluster.topics(changelog):
            return None
        view = compacted_view(parts.cluster.read(changelog))
        return len(view) if all(entry.value == ONE for entry in view.values()) else -len(view)

    return look


def _rebuild(parts: Parts) -> Made:
    program, file = _program(parts, 2)
    return Made(("state", "rebuild", file, "--yes"), _state(parts, program.changelog))


def _replace(parts: Parts) -> Made:
    program, file = _program(parts, 1)
    parts.cluster.produce(program.changelog, [Record(b"k1", b"wrong", START, (), 0)])
    command = ("state", "rebuild", file, "--damaged", program.store, "--write", "replace", "--confirm", program.changelog)
    return Made(command, _state(parts, program.changelog), (program.changelog, program.application))


def _into(parts: Parts) -> Made:
    program, file = _program(parts, 2)
    other = f"{parts.name}-other"
    command = ("state", "rebuild", file, "--into", other, "--yes")
    return Made(command, _state(parts, f"{other}-{program.store}-changelog"), (other, f"{other}-{program.store}-changelog"))


def _repartition(parts: Parts) -> Made:
    program, file = _program(parts, 2, by_key=True)
    _fill(parts, program.changelog, value=ONE, by_key=True)
    moved = f"{parts.name}-moved"
    parts.cluster.create(moved, 3)
    _fill(parts, moved, by_key=True)
    command = ("state", "repartition", file, "--partitions", "3", "--input", f"{program.topic}={moved}", "--confirm", program.application)
    count = _state(parts, program.changelog)
    return Made(command, lambda: (count(), parts.cluster.topics(program.changelog).get(program.changelog)), (program.application,))


def _state_restore(parts: Parts) -> Made:
    program, file = _program(parts, 2)
    content = [Record(b"k%d" % at, ONE, START + at, (), at % 2) for at in range(20)]
    parts.cluster.produce(program.changelog, content)
    path = parts.folder / "snapshot"
    parts.kops("state", "snapshot", file, "--to", path)
    parts.cluster.produce(program.changelog, [Record(record.key, b"wrong", START + 99, (), record.partition) for record in content])
    return Made(("state", "restore", path, "--yes"), _state(parts, program.changelog))


def _remove_members(parts: Parts) -> Made:
    """Remove a static member: it stays in the group when its process ends, and does not join again."""
    (topic,), group = parts.topics("t"), f"{parts.name}-g"
    with member(parts.cluster.servers, group, topic, group_instance_id="left", session_timeout_ms=300_000):
        pass
    described = parts.cluster.admin.describe_consumer_groups
    return Made(("groups", "remove-members", group, "--all"), lambda: len(described([group])[group].result(HANG_SECONDS).members), (group,))


def _share_offsets(parts: Parts) -> Made:
    (topic,), group = parts.topics("t", partitions=1, records=6), f"{parts.name}-g"
    apache = parts.until_it_ends(ApacheTools(parts.cluster.servers))
    moved = parts.fixture("groups").move_share_offsets
    wait_for("start offsets", lambda: moved(group, {TopicPartition(topic, 0): 2}) == {TopicPartition(topic, 0): None})
    printed = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"

    def starts():
        found = apache.run("--describe", "--offsets", "--group", group, printed)
        return [int(start) for start in re.findall(rf"^{re.escape(group)}\s+\S+\s+\d+\s+(\d+)", found, re.MULTILINE)]

    return Made(("share-groups", "reset", group, "--to", "5", "--yes"), starts)


def _abort(parts: Parts) -> Made:
    (topic,), name = parts.topics("t"), f"{parts.name}-open"
    producer = Producer({"bootstrap.servers": parts.cluster.servers, "transactional.id": name, "transaction.timeout.ms": 600_000})
    producer.init_transactions(HANG_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(HANG_SECONDS) == 0
    parts.fixture("request").addfinalizer(producer.purge)  # until then it lives
    admin = parts.until_it_ends(closing(KafkaAdminClient(bootstrap_servers=parts.cluster.servers.split(","))))
    command = ("transactions", "abort", "--transactional-id", name)
    return Made(command, lambda: admin.describe_transactions([name])[name].state.value == "Ongoing", (name,))


COUNT, ONE = Program("count", "long", value="bytes"), struct.pack(">q", 1)
STANDING = {"t:0": 7, "t:1": 5}
AT_START, AT_END = {"t:0": 0, "t:1": 0}, {"t:0": 10, "t:1": 10}
WORKERS, SPARK = ("connect_workers",), ("spark",)
INPUT = {"input:0": 7, "input:1": 5}
BOTH = ["app-counts-changelog", "input"]

ALONE = "the broker that tests share is alone; it is one request, and tests/sandbox/test_reassign.py carries it out"
UNKILLED = {
    "acls.change": "the broker that tests share has no authorizer; all but its requests is EntriesMutation, as for quotas.change",
    "cluster.features": "the controller takes all levels or none, and what is raised on the broker that tests share stays for other tests",
    "cluster.quorum": "the broker that tests share is its only controller, which cannot be removed",
    "topics.reassign": "tests/sandbox/test_reassign.py kills it while replicas move between three brokers, and finishes and undoes it",
    **dict.fromkeys(("topics.cancel", "topics.elect-leaders", "brokers.unregister"), ALONE),
    "brokers.move-replicas": "the broker that tests share has one log directory; tests/sandbox/test_reassign.py carries it out on two",
    **dict.fromkeys(
        ("tokens.create", "tokens.expiry"), "a token is of the user that logged in, and to the broker that tests share none does"
    ),
}
"""Operations that no case kills, and why."""

CASES = [
    Case("topics.create", _create, {}, {"a": 2, "b": 2}, {}),
    Case("topics.delete", _delete, {"a": 2, "b": 2}, {}, {"a": 2, "b": 2}),
    Case("topics.change", _alter, ["1000000"] * 2, ["2000000"] * 2, ["1000000"] * 2),
    Case(
        "cluster.apply",
        _apply_folder,
        ({"grown": 2, "gone": 2}, []),
        ({"grown": 3, "new": 2}, [5_000_000]),
        ({"grown": 3, "gone": 2}, []),
    ),
    Case("settings.change", _settings, "15000", "14000", "15000"),
    Case("topics.truncate", _truncate, [0, 0], [6, 6], None),
    Case("groups.delete", _delete_groups, {"g": STANDING, "h": STANDING}, {"g": {}, "h": {}}, {"g": STANDING, "h": STANDING}),
    Case("groups.remove-members", _remove_members, 1, 0, None),
    Case("share-groups.offsets", _share_offsets, [2], [5], [2]),
    Case("transactions.abort", _abort, True, False, None),
    Case("offsets.move", _move, {"g": STANDING}, {"g": AT_START}, {"g": STANDING}),
    Case("offsets.move", _move_many, *({"g": at, "h": at} for at in (STANDING, AT_START, STANDING)), variant=" of many"),
    Case("offsets.delete", _delete_offsets, {"g": STANDING}, {"g": {"t:1": 5}}, {"g": STANDING}),
    Case("records.consume", _consume, {"g": STANDING}, {"g": AT_END}, {"g": STANDING}, finishes=False),
    Case("records.produce", _produce, [0], [1], None, finishes=False, repeats=True),
    Case("users.change", _delete_user, [4096], [], None),
    Case("quotas.change", _quotas, {}, {"consumer_byte_rate": 5_000_000, "request_percentage": 40}, {}),
    Case("schemas.register", _register, False, True, False, needs=("registry",)),
    Case("schemas.unregister", _unregister, True, False, True, needs=("registry",)),
    Case("schemas.delete", _delete_subject, True, False, True, needs=("registry",)),
    Case("schemas.restore", _undelete, False, True, False, needs=("registry",)),
    Case("schemas.config", _config, None, "FULL", None, creates=True, needs=("registry",)),
    Case("streams.reset", _reset, (INPUT, BOTH), (dict.fromkeys(INPUT, 0), ["input"]), (INPUT, ["input"])),
    Case("connect.change", _connect_apply, [], ["-a", "-b"], [], needs=WORKERS),
    Case("connect.change", _connect_apply_with_topics, ([], []), (["-a"], ["dead", "t"]), ([], []), needs=WORKERS, variant=" with topics"),
    Case("connect.state", _pause, "RUNNING", "PAUSED", "RUNNING", needs=WORKERS),
    Case("connect.restart", _restart, ["RUNNING"] * 2, ["RUNNING"] * 2, None, finishes=False, needs=WORKERS),
    Case("connect.offsets", _connect_offsets, *((["STOPPED"], {"0": at}) for at in (10, 7, 10)), needs=WORKERS),
    Case("connect.loggers", _loggers, "INFO", "DEBUG", "INFO", needs=WORKERS),
    Case("replay.run", _replay, 0, 20, 0, repeats=True, needs=SPARK),
    Case("replay.redrive", _redrive, 0, 20, None, refers=True, needs=SPARK),
    Case("replay.restore", _restore, None, 20, 0, repeats=True, needs=SPARK),
    Case("replay.undo", _replay_undo, 20, 0, None, needs=SPARK),
    Case("state.rebuild", _rebuild, 0, 20, 0, needs=SPARK),
    Case("state.replace", _replace, -1, 20, -1, needs=SPARK),
    Case("state.into", _into, None, 20, None, creates=True, needs=SPARK),
    Case("state.repartition", _repartition, (20, 2), (20, 3), (20, 2), needs=SPARK),
    Case("state.restore", _state_restore, -20, 20, -20, needs=SPARK),
]
