"""Every verb that asks brokers, run on a cluster of one version of Kafka, and what came of each.

``LINES`` is the one table: a verb is run in at least one line of it, or stands in ``ELSEWHERE`` with what it asks instead of brokers
(``tests/unit/project/test_compatibility.py`` compares both with kops' own commands). ``tests/broker/test_every_version.py`` runs it on each
of ``VERSIONS`` and compares what came of it with ``RECORDED``, from which ``docs/compatibility.md`` is written; with
``KOPS_TEST_RECORD=1`` it writes both instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kops.config.connection import Connection
from kops.config.paths import directories
from kops.core.errors import ExitCode
from kops.core.models import TopicPartition
from kops.core.plan import plan_of_document
from kops.gateways.kafka import Kafka
from kops.gateways.machine.jars import KAFKA_VERSION
from kops.operations.protocol.journal import EntryStatus, Journal
from support.command_line import Outcome
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.strangers import every_verb
from support.streams_apps import Cluster, wait_for
from support.zookeeper_kafka import OLDEST

VERSIONS = (OLDEST, "3.3.2", "3.6.2", "3.9.1", "4.0.2", "4.1.1", "4.3.1", KAFKA_VERSION)
ROOT = Path(__file__).parents[2]
RECORDED, PAGE = ROOT / "tests" / "broker" / "compatibility.json", ROOT / "docs" / "compatibility.md"

ELSEWHERE = {
    **dict.fromkeys(("completion", "doctor", "help", "plugins", "version", "streams capture"), "this machine"),
    **dict.fromkeys(("sandbox", "demo"), "the brokers that it starts"),
    "schemas": "the schema registry",
    "connect": "Connect's workers",
    "tokens": "brokers with a secret key for tokens (`tests/broker/test_tokens.py`, Kafka 4.4)",
    "streams delete": "what `streams reset` and `groups delete` ask (`tests/streams/test_streams_delete.py`, Kafka 4.4)",
}
"""Nouns and verbs that are not run here, and what they ask: no brokers of another's, or what others do."""

SERVED = "yes"
RECORD = "KOPS_TEST_RECORD"


@dataclass(frozen=True)
class Line:
    """A command line; ``{name}`` is filled in after it is split into words.

    :param undo: whether it is undone at once
    :param finds: whether it ends with 1 where it found something
    :param stopped: a broker that is stopped before
    :param answer: part of the error with which it is served, where what it needs more is not there
    """

    text: str
    undo: bool = False
    finds: bool = False
    stopped: int = 0
    answer: str = ""

    @property
    def verb(self) -> str:
        return max((verb for verb in VERBS if f"{self.text} ".startswith(f"{verb} ")), key=len)


VERBS = tuple(verb for verb, _ in every_verb())
_ALL = (
    "context add mine --bootstrap-servers {servers}",
    "context use mine",
    "context list",
    "context show",
    "context test",
    "context import {folder}/client.properties --name imported",
    "context remove imported --yes",
    "cluster describe",
    Line("cluster health", finds=True),
    "cluster brokers",
    "cluster api-versions",
    "cluster features list",
    "cluster features upgrade --release {release} --confirm metadata.version",
    Line("cluster features downgrade {lower} --yes", undo=True),
    "cluster quorum show",
    Line("cluster quorum add 9 --endpoint CONTROLLER://127.0.0.1:1 --dry-run", answer="no controller 9 observes the metadata log"),
    "cluster quorum remove 3 --dry-run",
    "cluster export {folder}/exported",
    Line("cluster diff {folder}/topics", finds=True),
    Line("cluster apply {folder}/topics --yes", undo=True),
    "brokers list",
    "brokers describe 1",
    "brokers config 1",
    "brokers log-dirs",
    Line("brokers alter 1 --config log.cleaner.backoff.ms=14000 --yes", undo=True),
    "brokers move-replicas 1 {topic} --to {directory} --yes",
    Line("brokers demote 1 --yes", undo=True),
    "topics create {new} --partitions 2 --yes",
    "topics list",
    "topics describe {new}",
    "topics offsets {topic}",
    Line("topics alter {new} --config retention.ms=7200000 --yes", undo=True),
    "topics add-partitions {new} --partitions 3 --yes",
    Line("topics diff {folder}/topics", finds=True),
    Line("topics apply {folder}/topics --yes", undo=True),
    Line("topics reassign {new} --replication-factor 2 --yes", undo=True),
    "topics reassignments",
    "topics elect-leaders {topic} --yes",
    "topics truncate {topic}:1 --to 1 --confirm {topic}",
    Line("topics delete {new} --confirm {new}", undo=True),
    "records produce {topic} --key k --value v",
    "records consume {topic}",
    "records peek {group}",
    "records dead-letters {queue} --count",
    "groups list",
    "groups describe {group}",
    "groups lag {group}",
    "groups config {group}",
    Line("groups alter {group} --config consumer.session.timeout.ms=50000 --yes", undo=True),
    "groups remove-members {live} --all --confirm {live}",
    "offsets show {group}",
    "offsets export {group}",
    Line("offsets reset {group} --topic {topic} --to-earliest --yes", undo=True),
    Line("offsets seek {group} {topic}:0=end --yes", undo=True),
    Line("offsets edit {group} --yes", undo=True),
    "offsets copy {group} {group}-copy --new-group --yes",
    "offsets history {group}",
    Line("offsets delete {group}-copy --topic {topic}:0 --confirm {group}-copy", undo=True),
    Line("groups delete {group}-copy --confirm {group}-copy", undo=True),
    "share-groups lag",
    Line("share-groups reset {share} --to start --yes", undo=True),
    Line("share-groups delete-offsets {share} --topic {topic} --confirm {share}", undo=True),
    Line("share-groups delete {share} --confirm {share}", undo=True),
    "acls list",
    Line("acls create User:app --operation READ --resource topic:{topic} --yes", undo=True),
    "acls grant User:app --consume {topic} --group {group} --yes",
    "acls explain User:app READ topic:{topic}",
    Line("acls audit", finds=True),
    "acls export",
    Line("acls revoke User:app --consume {topic} --group {group} --yes", undo=True),
    Line("acls delete User:app --yes", undo=True),
    "users create small --generate {folder}/password --yes",
    "users list",
    "users alter small --generate {folder}/second --confirm small",
    "users delete small --confirm small",
    Line("quotas set --user small producer_byte_rate=1000000 --yes"),
    "quotas list",
    "quotas explain --user small --client-id app",
    Line("quotas remove --user small --yes", undo=True),
    "client-metrics set sub --metrics org.apache.kafka.consumer. --interval 30s --yes",
    "client-metrics list",
    Line("client-metrics delete sub --yes", undo=True),
    "transactions list",
    "transactions describe {open}",
    "transactions producers {topic}:0",
    "transactions abort --transactional-id {open} --confirm {open}",
    "changelog list --all",
    "streams list",
    "streams describe {application}",
    Line("diagnose {group}", finds=True),
    "topics alter {new} --config retention.ms=7200000 --plan-out {folder}/plan.json",
    "apply {folder}/plan.json --yes",
    "undo last --yes",
    "journal list",
    "journal show last",
    "journal finish {unfinished} --yes",
    "state init {application} --out {folder}/init.yaml",
    Line("state diff {folder}/state.yaml", finds=True),
    "state rebuild {folder}/state.yaml --yes",
    "changelog inspect {changelog} --key string --value long",
    "changelog get {changelog} k1 --key string --value long --all-partitions",
    "changelog history {changelog} k1 --key string --value long --all-partitions",
    "changelog stats {changelog}",
    "changelog stats {changelog} --spark",
    "state verify {folder}/state.yaml",
    "state query {folder}/state.yaml k1",
    "state snapshot {folder}/state.yaml --to {folder}/snapshot",
    Line("state restore {folder}/snapshot --yes", undo=True),
    Line("state repartition {folder}/state.yaml --partitions 3 --input {input}={moved} --confirm {application}", undo=True),
    Line("streams reset {application} --yes --confirm {application}", undo=True),
    Line("replay run {topic} --to {target} --yes", undo=True),
    "replay resume {resumed} --yes",
    "replay archive {input} --to {folder}/archive",
    "replay restore {folder}/archive --to {target}-restored --yes",
    "replay redrive {queue} --to-topics {target} --yes",
    "brokers drain 3 --yes",
    Line("brokers unregister 3 --confirm 3", stopped=3),
)
LINES = tuple(line if isinstance(line, Line) else Line(line) for line in _ALL)


Answers = dict[str, dict[str, str]]
"""By verb and version of Kafka: ``SERVED``, or the release that the verb says it needs."""


def recorded() -> Answers:
    found: Answers = json.loads(RECORDED.read_text("utf-8"))
    return found


def record(version: str, answers: Mapping[str, str]) -> None:
    """Write what came of a run on a version into ``RECORDED``, and the page."""
    before = recorded() if RECORDED.exists() else {}
    now = {verb: {**before.get(verb, {}), version: answer} for verb, answer in answers.items()}
    kept = {verb: {each: now[verb][each] for each in VERSIONS if each in now[verb]} for verb in VERBS if verb in now}
    RECORDED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(kept), "utf-8")


def versions_of(answers: Answers) -> tuple[str, ...]:
    """Return the versions that were recorded, oldest first."""
    return tuple(next(iter(answers.values())))


def page(answers: Answers) -> str:
    """Return the page that says which verb works with which version of Kafka."""
    head = ["verb", *versions_of(answers)]
    rows = [
        [f"`{verb}`", *(answer if answer == SERVED else f"needs {answer}" for answer in found.values())] for verb, found in answers.items()
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
    asked: dict[str, list[str]] = {}
    for what, whom in ELSEWHERE.items():
        asked.setdefault(whom, []).append(f"`{what}`")
    others = "".join(f"- {', '.join(names)}: {whom}\n" for whom, names in asked.items())
    return PAGE_TEXT.format(table=table, others=others, oldest=VERSIONS[0])


PAGE_TEXT = """\
# Compatibility

kops works with brokers of Apache Kafka 2.8 and newer. `make test-long` runs every verb that asks brokers on a cluster of three brokers of
each version below, with ZooKeeper for {oldest} and KRaft for the others; this table is what came of it. Most verbs that change something
were carried out and undone.

A verb that needs a newer Kafka changes nothing, ends with exit code 5 and says so in one line, as `kops transactions list` does on 2.8:

```text
kops: error: cannot list the transactions: this needs Kafka 3.0, and the brokers speak the protocol of 2.8
```

The release is the first in which kops' use of the request works without early access. What a verb shows beside its subject may be missing
with older brokers, such as the lag of share groups before 4.2; `diagnose --checks` has what each check needs. Share
groups of 4.1 are a preview, whose start offsets can be read but not moved. Voters can be added and removed where the quorum was formatted
for it, or, from 4.1 on, once `kraft.version` is 1.

{table}
These are not in the table. They ask no brokers of a context, or what others there ask:

{others}"""

START = 1_700_000_000_000
COUNT, ONE = Program("count", "long", value="bytes"), (1).to_bytes(8, "big")
TOO_OLD = re.compile(
    r"this needs Kafka (?P<needed>\d+\.\d+), and (?:the brokers speak|broker \d+ speaks) the protocol of (?P<found>\d+\.\d+)$", re.MULTILINE
)


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@dataclass
class Scene:
    """A cluster with all that the lines are about.

    :param version: of its brokers
    :param kops: runs kops with this cluster's configuration and state
    :param words: what is filled into lines
    :param stop: stops a broker for good
    """

    version: str
    kops: Callable[..., Outcome]
    words: Mapping[str, str]
    stop: Callable[[int], None]

    def _newest(self) -> list[str]:
        return [entry["id"] for entry in self.kops("journal", "list", "--limit", "1", "-o", "json").ok().json]

    @property
    def release(self) -> str:
        return ".".join(self.version.split(".")[:2])

    def run(self, line: Line) -> str:
        """Run a line; return ``SERVED``, or the release that it says it needs.

        :raises AssertionError: when it fails in another way, or says it in another way
        """
        if line.stopped:
            self.stop(line.stopped)
        before = self._newest()
        outcome = self.kops(*(word.format(**self.words) for word in line.text.split()))
        report = f"kops {line.text} on {self.version}: exit code {outcome.code}\n--- stdout\n{outcome.out}\n--- stderr\n{outcome.err}"
        assert "Traceback" not in outcome.err, report
        errors = [text for text in outcome.err.splitlines() if text.startswith("kops: error: ")]
        if outcome.code in ((0, 1) if line.finds else (0,)) and not errors:
            if line.undo and self._newest() != before:  # it may have been so already
                plan = self.kops("undo", "last", "--dry-run", "-o", "json").ok().json
                self.kops("undo", "last", "--yes", *(("--confirm", plan["confirm"]) if plan.get("confirm") else ())).ok()
            return SERVED
        if line.answer and line.answer in outcome.err:
            return SERVED
        assert (outcome.code, outcome.out, len(errors)) == (ExitCode.REFUSED, "", 1), report
        said = TOO_OLD.search(errors[0])
        assert said, report
        assert said["found"] == self.release, report
        assert numbers(said["needed"]) > numbers(self.release), report
        return said["needed"]


@contextlib.contextmanager
def scene(version: str, servers: str, folder: Path, kops: Callable[..., Outcome], stop: Callable[[int], None]) -> Iterator[Scene]:
    """Make topics, groups, a transaction and an application, and what lines name of them.

    :param folder: of the brokers: their log directories are below it
    """
    cluster, files, program = Cluster(servers), folder / "files", COUNT.named("app")
    (files / "topics").mkdir(parents=True)
    topic, queue, input_, moved, target = "t", "dead", program.topic, "moved", "target"
    cluster.admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1, 2], [2, 3]])])[topic].result(HANG_SECONDS)
    cluster.create_all({queue: 2, input_: 2, moved: 3, target: 2, "resumed": 3})
    cluster.create(program.changelog, 2, {"cleanup.policy": "compact"})
    keys = [b"k%d" % at for at in range(20)]
    letters = (("__connect.errors.topic", target.encode()), ("__connect.errors.partition", b"1"), ("__connect.errors.offset", b"1"))
    wait_for("leaders", lambda: cluster.ends(topic))
    cluster.produce_all(
        {
            topic: [Record(key, b"v", START, (), at % 2) for at, key in enumerate(keys)],
            queue: [Record(key, b"v", START, letters, at % 2) for at, key in enumerate(keys)],
            input_: [Record(key, b"v", START) for key in keys],
            moved: [Record(key, b"v", START) for key in keys],
        }
    )
    for group in ("g", "left"):
        cluster.commit(group, {(topic, 0): 7, (topic, 1): 5})
    cluster.commit(program.application, {(input_, at): high for at, (_, high) in cluster.ends(input_).items()})
    (files / "topics" / "topics.yaml").write_text("name: described\npartitions: 3\nconfig:\n  retention.ms: 3600000\n", "utf-8")
    (files / "client.properties").write_text(f"bootstrap.servers={servers}\n", "utf-8")
    (files / "state.yaml").write_text(json.dumps(program.state_file()), "utf-8")
    words = {
        "servers": servers,
        "folder": str(files),
        "topic": topic,
        "new": "new",
        "queue": queue,
        "input": input_,
        "moved": moved,
        "target": target,
        "group": "g",
        "live": "live",
        "share": "share",
        "open": "open",
        "application": program.application,
        "changelog": program.changelog,
    }
    release = ".".join(version.split(".")[:2])
    words["directory"] = other_directory(folder, f"{topic}-0")
    words |= {"release": release, "lower": "group.version=0"}
    if numbers(release) < (4, 0):
        levels = kops("cluster", "features", "list", "-o", "json").ok().json
        words["lower"] = f"metadata.version={next((one['finalized_level'] for one in levels if one['name'] == 'metadata.version'), 1)}"
    move = kops("offsets", "seek", "left", f"{topic}:0=2", "--dry-run", "-o", "json")
    words["unfinished"] = interrupted(move.ok().json)
    replay = kops("replay", "run", moved, "--to", "resumed", "--dry-run", "-o", "json")
    words["resumed"] = interrupted(replay.ok().json)
    with contextlib.ExitStack() as there:
        there.enter_context(member(servers, "live", topic))
        there.enter_context(open_transaction(servers, "open", topic))
        if numbers(release) >= (4, 2):
            with contextlib.closing(Kafka(Connection(tuple(servers.split(","))))) as kafka:
                moved_to = {TopicPartition(topic, 0): 1, TopicPartition(topic, 1): 1}
                wait_for("a share group", lambda: set(kafka.groups.move_share_offsets("share", moved_to).values()) == {None})
        yield Scene(version, kops, words, stop)


@contextlib.contextmanager
def open_transaction(servers: str, transactional_id: str, topic: str, **settings: str) -> Iterator[None]:
    config = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({**config, "bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(HANG_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(HANG_SECONDS) == 0
    yield


def other_directory(folder: Path, replica: str) -> str:
    """Return the log directory of broker 1 that does not hold a replica."""
    (there,) = folder.glob(f"**/broker-1/data*/{replica}")
    return str(there.parent.with_name("data-2" if there.parent.name == "data" else "data"))


def interrupted(plan: Any) -> str:
    """Return the id of an entry of a plan that was interrupted before anything was done."""
    journal = Journal(directories(os.environ).state / "journal")
    return journal.close(journal.open(plan_of_document(plan)), EntryStatus.INTERRUPTED, ()).id
