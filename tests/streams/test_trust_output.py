"""What an output topic and a repartition topic say of real applications whose changelogs were lost, and what they cannot say.

All applications run in one JVM, twice: what makes the difference often lies between the two runs.
"""

import json
import re
import shutil
import struct
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support import twins
from support.command_line import Outcome
from support.patience import HANG_SECONDS
from support.programs import KeyBy, Program, Record
from support.streams_apps import Cluster
from support.verified import counts, findings

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS, PARTITIONS, OUTPUTS = 30, 3, 2
START = int(time.time() * 1000) - 3_600_000
COUNT = Program("count", "long", value="string")
BY_ITEM = {"key": "string", "schema": "item string, price double"}
PURGED = (("repartition.purge.interval.ms", "50"), ("commit.interval.ms", "50"))
KEPT = (("repartition.purge.interval.ms", str(3_600_000)),)


def counted(first: int = 0, name: bytes = b"k", keys: int = KEYS) -> tuple[Record, ...]:
    """A record for each key."""
    return tuple(Record(b"%s%d" % (name, at), b"x", START + first + at) for at in range(keys))


def priced(first: int = 0, name: bytes = b"item-%d") -> tuple[Record, ...]:
    """A record for each item; all of an item come from one partition."""
    return tuple(
        Record(b"%d" % at, (b'{"item":"' + name + b'","price":%d.25}') % (at, at + first), START + first + at, (), at % PARTITIONS)
        for at in range(KEYS)
    )


def placed(partitioner: str | None, config: tuple[tuple[str, str], ...]) -> Program:
    by_item = KeyBy("string", "item", "byitem", 4, partitioner)
    return Program("sum", "double", field="price", key_by=by_item, config=config, **BY_ITEM)


@dataclass(frozen=True)
class Case:
    """An application, and what happens to it between its runs.

    :param skips: records of partition 0 that it is made to pass over, and no commit shows it
    :param forgets: its changelog and its local state are deleted
    :param is_kept: a snapshot is taken
    """

    program: Program = COUNT
    first: tuple[Record, ...] = counted()
    second: tuple[Record, ...] = counted(KEYS)
    guarantee: str = "at_least_once"
    skips: int = 0
    forgets: bool = False
    is_kept: bool = False


CASES = {
    "one partition": Case(),
    "all of it": Case(guarantee="exactly_once_v2"),
    "skipped": Case(skips=2),
    "expired": Case(),
    "reset": Case(second=counted(KEYS, b"n", 6), forgets=True),
    "expires": Case(),
    "kept": Case(is_kept=True),
    "moved": Case(placed(None, KEPT), priced(), priced(KEYS), is_kept=True),
    "placed": Case(placed("last_letter", KEPT), priced(), priced(KEYS)),
    "in one partition": Case(placed("last_letter", PURGED), priced(0, b"%d-item"), priced(KEYS, b"%d-item")),
    "placed and purged": Case(placed("last_letter", PURGED), priced(), priced(KEYS)),
}


@dataclass
class Scene(twins.Scene):
    """The applications after their runs, and what they held."""

    held: dict[str, dict[bytes, Any]]
    snapshots: dict[str, Path]

    def kops(self, name: str, verb: str, *options: object, output: str | None = "", **fields: object) -> Outcome:
        """Run a verb with a state file that names the output topic, or another one; None: none.

        :param fields: of the store
        """
        twin = self.twins[name]
        file = Path(twin.state_file)
        body = json.loads(file.read_text())
        if output is not None:
            body["stores"]["totals"]["output"] = output or twin.program.output
        body["stores"]["totals"] |= fields
        file.write_text(json.dumps(body))
        return super().kops(name, verb, *options, file=str(file))


@pytest.fixture(scope="module")
def scene(cluster, tmp_path_factory, run_kops_alone):
    prefix = f"output-{uuid.uuid4().hex[:8]}"
    made = {}
    for number, (name, case) in enumerate(CASES.items()):
        program = case.program.named(f"{prefix}-{number}")
        program = replace(program, config=(*program.config, ("processing.guarantee", case.guarantee)))
        made[name] = twins.Twin(cluster, program, tmp_path_factory.mktemp("app"), case.guarantee)
    cluster.create_all({twin.program.topic: PARTITIONS for twin in made.values()})
    cluster.create_all({str(twin.program.output): OUTPUTS for twin in made.values()})
    twins.process_each([(made[name], case.first) for name, case in CASES.items()])
    snapshots = {name: made[name].folder / "snapshot" for name, case in CASES.items() if case.is_kept}
    for name, folder in snapshots.items():
        run_kops_alone("state", "snapshot", made[name].state_file, "--to", folder, "-B", cluster.servers).ok()
    for name, case in CASES.items():
        if case.skips:
            twins.pass_over(made[name], case.skips, START)
        if case.forgets:
            cluster.recreate(made[name].program.changelog)
            shutil.rmtree(made[name].state)
    twins.process_each([(made[name], case.second) for name, case in CASES.items()])
    yield Scene(made, run_kops_alone, {name: twin.view() for name, twin in made.items()}, snapshots)
    cluster.delete_all(cluster.topics(prefix))


def abort(cluster: Cluster, topic: str) -> None:
    """Write a record in a transaction that is aborted."""
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": f"{topic}-aborted"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, struct.pack(">q", 99), b"k0", timestamp=START)
    producer.flush(HANG_SECONDS)
    producer.abort_transaction(60)
    cluster.settle(topic)


def test_an_output_topic_proves_a_partition_of_which_nothing_survived(scene):
    scene.lose("one partition", 1)
    lost = sum(entry.partition == 1 for entry in scene.held["one partition"].values())
    without = scene.verified("one partition", code=1, output=None)
    assert (counts(without), without["witnesses"]["output"]) == ((KEYS - lost, lost, 0, 0), None)
    found = scene.verified("one partition", code=1)
    assert (found["verdict"], counts(found), found["missing"]) == ("proven", (KEYS, 0, 0, 0), lost)
    topic = scene.twins["one partition"].program.output
    assert found["witnesses"]["output"] == {"topic": topic, "equal": KEYS, "differing": 0, "unexpected": 0}
    done = scene.kops("one partition", "rebuild", "--yes").ok()
    assert f": {KEYS} proven" in done.err
    assert {key: entry.value for key, entry in scene.twins["one partition"].view().items()} == {
        key: entry.value for key, entry in scene.held["one partition"].items()
    }
    again = scene.verified("one partition", code=0)
    assert (counts(again), again["witnesses"]["written_by_kops"]) == ((KEYS, 0, 0, 0), lost)


def test_an_output_topic_proves_a_changelog_that_was_lost_whole(scene):
    twin = scene.twins["all of it"]
    abort(twin.cluster, twin.program.output)
    scene.lose("all of it")
    plan = scene.kops("all of it", "rebuild", "--dry-run").ok()
    assert f": {KEYS} proven" in plan.err
    found = scene.verified("all of it", code=1)
    assert (counts(found), found["witnesses"]["surviving"]) == ((KEYS, 0, 0, 0), 0)


def test_an_output_topic_with_other_values_contradicts(scene):
    """The values are another's: of another application, with other serdes, or of something that is not this table."""
    twin = scene.twins["all of it"]
    other = twin.cluster.create(f"{twin.program.output}-texts", OUTPUTS)
    twin.cluster.produce(other, [*(replace(one, value=b"2") for one in counted(KEYS)), *counted(0, b"other", 3)])
    scene.lose("all of it")
    found = scene.verified("all of it", code=1, output=other)
    output = found["witnesses"]["output"]
    assert (counts(found), output["differing"], output["unexpected"]) == ((0, 0, KEYS, 0), KEYS, 3)
    refused = scene.kops("all of it", "rebuild", "--yes", output=other)
    assert (refused.code, f"{KEYS} have another value or time there and 3 keys there were not computed" in refused.err) == (5, True)
    assert re.search(r"\(k\d+: computed 2 at [^,]+, written ", refused.err)


def test_records_that_an_application_skipped_show_in_its_output(scene):
    scene.lose("skipped", 0)
    lost = sum(entry.partition == 0 for entry in scene.held["skipped"].values())
    assert counts(scene.verified("skipped", code=1, output=None)) == (KEYS - lost, lost, 0, 0)
    found = scene.verified("skipped", code=1)
    assert (found["verdict"], found["witnesses"]["output"]["differing"]) == ("doubtful", 2)
    (differs,) = findings(found)
    assert (differs["check"], "computed 2 at" in differs["summary"]) == ("output_differs", True)
    assert scene.kops("skipped", "rebuild", "--yes").code == 5


def test_an_output_topic_that_lost_records_proves_nothing_of_their_keys(scene):
    twin = scene.twins["expired"]
    ends = twin.cluster.ends(twin.program.output)
    twin.cluster.trim(twin.program.output, {0: ends[0][1]})
    scene.lose("expired")
    found = scene.verified("expired", code=1)
    output = found["witnesses"]["output"]
    assert (counts(found), output["differing"]) == ((output["equal"], KEYS - output["equal"], 0, 0), 0)
    assert 0 < output["equal"] < KEYS


def test_keys_that_an_application_forgot_are_still_in_its_output(scene):
    """It lost its state and went on: the output topic has all that was computed, and the store did not."""
    assert set(scene.held["reset"]) == {b"n%d" % number for number in range(6)}
    whole = scene.verified("reset", code=1)
    assert (counts(whole), whole["missing"]) == ((6, 0, KEYS, 0), KEYS)
    scene.lose("reset")
    found = scene.verified("reset", code=1)
    assert (found["witnesses"]["output"]["equal"], found["witnesses"]["output"]["differing"]) == (KEYS + 6, 0)
    assert counts(found) == (0, 0, KEYS + 6, 0)
    assert [finding["check"] for finding in findings(found)] == ["differed_before"]


def test_keys_that_expire_from_a_changelog_are_not_certain(scene):
    twin = scene.twins["expires"]
    changelog = twin.program.changelog
    twin.cluster.set_config(changelog, cleanup_policy="compact,delete", retention_ms=str(7 * 86_400_000))
    shown = scene.kops("expires", "verify", output=None).ok()
    assert "has cleanup.policy=compact,delete: the broker deletes keys that were not written again after 7d" in shown.err
    scene.lose("expires", 2)
    before = twin.view()
    refused = scene.kops("expires", "rebuild", "--yes", output=None)
    assert (refused.code, f"are missing from partition 2 of {changelog}, where old keys expire" in refused.err) == (5, True), refused
    assert (twin.view(), scene.verified("expires", code=1)["verdict"]) == (before, "doubtful")
    scene.run_kops("topics", "alter", changelog, "--config", "cleanup.policy=compact", "-B", twin.cluster.servers, "--yes").ok()
    assert scene.verified("expires", code=1, output=None)["verdict"] == "computed"
    assert scene.verified("expires", code=1)["verdict"] == "proven"


def test_an_older_snapshot_proves_a_state_file_when_the_changelog_is_lost(scene):
    scene.lose("kept")
    taken = {name: json.loads((folder / "manifest.json").read_text())["taken"] for name, folder in scene.snapshots.items()}
    for name, at in taken.items():
        found = scene.verified(name, "--snapshot", scene.snapshots[name], output=None)
        assert (counts(found), found["records"]) == ((KEYS, 0, 0, 0), KEYS), "up to the snapshot's offsets"
        assert (found["last_proven"]["keys"], found["last_proven"]["at"]) == (KEYS, at)
    plan = scene.kops("kept", "rebuild", "--dry-run", output=None).ok()
    assert f"proven on {taken['kept'][:10]} over {KEYS} keys" in plan.err
    assert " computed" in plan.err  # nothing shows what came after
    wrong = scene.verified("kept", "--snapshot", scene.snapshots["kept"], code=1, output=None, where="key <> 'k0'")
    assert (counts(wrong), wrong["unexpected"]) == ((KEYS - 1, 0, 1, 0), 1)
    other = scene.kops("kept", "verify", "--snapshot", scene.snapshots["moved"])
    assert (other.code, "is a snapshot of the application" in other.err) == (2, True)
    assert scene.kops("kept", "verify", "--snapshot", scene.snapshots["kept"], "--at", "end").code == 2


def test_a_partitioner_of_its_own_shows_in_the_repartition_topic(scene):
    """Without surviving keys, the records that the repartition topic still holds tell where new keys go."""
    moved = scene.twins["moved"]
    assert moved.cluster.read(moved.program.repartition)
    scene.lose("moved")
    found = scene.verified("moved", code=1)
    assert (counts(found), found["witnesses"]["output"]["equal"]) == ((KEYS, 0, 0, 0), KEYS)
    assert counts(scene.verified("moved", code=1, output=None)) == (0, KEYS, 0, 0)
    scene.lose("placed")
    refused = scene.kops("placed", "rebuild", "--yes")
    assert (refused.code, "has a record with the key b'item-" in refused.err, "partitioner: custom" in refused.err) == (5, True, True)


def purge(twin: twins.Twin) -> None:
    """Delete the records of the repartition topic, as Kafka Streams does once they are processed."""
    ends = twin.cluster.ends(twin.program.repartition)
    assert sum(end for _start, end in ends.values()) == 2 * KEYS
    twin.cluster.trim(twin.program.repartition, {number: end for number, (_start, end) in ends.items()})


def test_a_partition_that_had_fewer_records_than_keys_shows_a_partitioner_of_its_own(scene):
    """All keys end in the same letter, so all of them went to one partition."""
    twin = scene.twins["in one partition"]
    purge(twin)
    scene.lose("in one partition")
    found = scene.verified("in one partition", code=1)
    assert (found["verdict"], found["witnesses"]["output"]["equal"]) == ("doubtful", KEYS)
    said = [finding["summary"] for finding in found["findings"] if finding["check"] == "key_placement"]
    assert any(f"{twin.program.repartition}:" in each and "never had more than 0 records" in each for each in said)


def test_where_nothing_shows_a_partitioner_nothing_is_certain(scene):
    """The output topic has all the right values, and says nothing of partitions."""
    purge(scene.twins["placed and purged"])
    scene.lose("placed and purged")
    found = scene.verified("placed and purged", code=1)
    assert (found["witnesses"]["output"]["equal"], found["witnesses"]["output"]["differing"]) == (KEYS, 0)
    assert counts(found) == (0, KEYS, 0, 0)
