"""A case for each mutation that kops can make, to be killed at every step: what is there before, after, and after its undo.

``CASES`` has one for every name of ``kops.operations.protocol.registry.MUTATIONS``; ``tests/unit/project/test_kill_cases.py`` sees to that.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import ConfigResource, ResourceType

from support.patience import HANG_SECONDS
from support.programs import Record

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
    """

    command: Sequence[object]
    look: Callable[[], Any]
    confirm: Sequence[str] = ()


@dataclass
class Case:
    """A mutation.

    :param undone: what there is after its undo; None: it cannot be undone
    :param finishes: whether `journal finish` plans the rest
    :param repeats: whether the same command does everything again, whatever was done
    :param needs: fixtures that it needs besides the broker
    """

    operation: str
    prepare: Callable[[Parts], Made]
    before: Any
    after: Any
    undone: Any
    finishes: bool = True
    repeats: bool = False
    needs: tuple[str, ...] = ()

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
    return Made(("records", "consume", topic, "--group", one), lambda: parts.committed("g"))


def _produce(parts: Parts) -> Made:
    (topic,) = parts.topics("t", partitions=1)
    command = ("records", "produce", topic, "--key", "k", "--value", "v")
    return Made(command, lambda: [high for _, high in parts.cluster.ends(topic).values()])


def _schema(parts: Parts) -> tuple[Sequence[object], Callable[[], Any], str]:
    import requests

    url, subject = parts.fixture("registry").url, f"{parts.name}-value"
    file = parts.folder / "order.avsc"
    file.write_text(json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))

    def look() -> list[int]:
        answer = requests.get(f"{url}/subjects/{subject}/versions", timeout=HANG_SECONDS)
        return answer.json() if answer.status_code == 200 else []

    return ("schemas", "register", subject, file, "--yes", "-X", f"schema.registry.url={url}"), look, subject


def _register(parts: Parts) -> Made:
    command, look, subject = _schema(parts)
    return Made(command, lambda: bool(look()), (subject,))


def _reset(parts: Parts) -> Made:
    name = f"{parts.name}-app"
    topics = parts.topics("input", "app-counts-changelog", records=20)
    parts.cluster.commit(name, {(topics[0], 0): 7, (topics[0], 1): 5})
    return Made(("streams", "reset", name), lambda: (parts.committed("app")["app"], sorted(parts.sizes())), (name,))


STANDING = {"t:0": 7, "t:1": 5}
AT_START, AT_END = {"t:0": 0, "t:1": 0}, {"t:0": 10, "t:1": 10}
INPUT = {"input:0": 7, "input:1": 5}
BOTH = ["app-counts-changelog", "input"]

CASES = [
    Case("topics.create", _create, {}, {"a": 2, "b": 2}, {}),
    Case("topics.delete", _delete, {"a": 2, "b": 2}, {}, {"a": 2, "b": 2}),
    Case("topics.change", _alter, ["1000000"] * 2, ["2000000"] * 2, ["1000000"] * 2),
    Case("topics.truncate", _truncate, [0, 0], [6, 6], None),
    Case("groups.delete", _delete_groups, {"g": STANDING, "h": STANDING}, {"g": {}, "h": {}}, {"g": STANDING, "h": STANDING}),
    Case("offsets.move", _move, {"g": STANDING}, {"g": AT_START}, {"g": STANDING}),
    Case("offsets.move_many", _move_many, *({"g": at, "h": at} for at in (STANDING, AT_START, STANDING))),
    Case("offsets.delete", _delete_offsets, {"g": STANDING}, {"g": {"t:1": 5}}, {"g": STANDING}),
    Case("records.consume", _consume, {"g": STANDING}, {"g": AT_END}, {"g": STANDING}, finishes=False),
    Case("records.produce", _produce, [0], [1], None, finishes=False, repeats=True),
    Case("schemas.register", _register, False, True, False, needs=("registry",)),
    Case("streams.reset", _reset, (INPUT, BOTH), (dict.fromkeys(INPUT, 0), ["input"]), (INPUT, ["input"])),
]
