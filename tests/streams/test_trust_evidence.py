"""What kops says of real applications whose state file, or whose history, is not what it seems: certain only of what it has seen.

All applications run in one JVM, twice: what makes the difference often lies between two runs.
"""

import json
import re
import struct
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from support import twins
from support.command_line import Outcome
from support.programs import Program, Record, Window
from support.verified import counts, findings

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS = 30
DAY = 86_400_000
PARTITIONS = 3
START = int(time.time() * 1000) - 3_600_000
"""Recent: the broker deletes what is older than the retention of a changelog of windows."""
COUNT = Program("count", "long", value="string")


def counted(first: int = 0) -> list[Record]:
    """A record for each key."""
    return [Record(f"k{number}".encode(), b"x", START + first + number) for number in range(KEYS)]


@dataclass(frozen=True)
class Case:
    """An application: what it reads in its first and in its second run.

    :param between: what kops is asked to do between the runs
    :param started_at: offset of each partition that is committed between the runs, where there was none yet
    :param skips: records of partition 0 that another tool makes the application pass over between the runs
    """

    program: Program
    first: tuple[Record, ...]
    second: tuple[Record, ...] = ()
    between: tuple[str, ...] = ()
    partitions: int = PARTITIONS
    started_at: int = 0
    skips: int = 0
    guarantee: str = "at_least_once"


def _windows(size: int) -> Program:
    return replace(COUNT, window=Window("window", size, retention=DAY))


def _at(time: int) -> Record:
    return Record(b"k", b"x", START + time)


def cases() -> dict[str, Case]:
    plain = (*counted(), *counted(KEYS))
    return {
        "right": Case(COUNT, plain),
        "lost": Case(COUNT, plain),
        "skipped": Case(COUNT, tuple(counted()), tuple(counted(KEYS)), skips=2),
        "narrow": Case(COUNT, (_at(0), _at(1))),
        "minutes": Case(_windows(60_000), tuple(counted(60_000 * at)[0] for at in range(40))),
        "restarted": Case(_windows(10_000), (_at(100_000),), (_at(5_000),), partitions=1),
        "started": Case(COUNT, (), plain, started_at=5),
        "moved": Case(
            COUNT,
            tuple(counted()),
            tuple(counted(KEYS)),
            between=("offsets", "reset", "{application}", "--topic", "{topic}:0", "--to-offset", "1"),
        ),
    }


@pytest.fixture(scope="module")
def scene(cluster, tmp_path_factory, run_kops_alone):
    prefix = f"trust-{uuid.uuid4().hex[:8]}"
    made = {}
    for name, case in cases().items():
        folder = tmp_path_factory.mktemp(name)
        made[name] = twins.make(cluster, case.program, f"{prefix}-{name}", folder, case.guarantee, case.partitions)
    twins.process_each([(made[name], case.first) for name, case in cases().items() if case.first])
    for name, case in cases().items():
        program = made[name].program
        if case.started_at:
            cluster.commit(program.application, {(program.topic, number): case.started_at for number in range(case.partitions)})
        if case.skips:
            twins.pass_over(made[name], case.skips, START)
        if case.between:
            words = [word.format(application=program.application, topic=program.topic) for word in case.between]
            run_kops_alone(*words, "--yes", "-B", cluster.servers).ok()
    again = [(made[name], case.second) for name, case in cases().items() if case.second]
    if again:
        twins.process_each(again)
    yield twins.Scene(made, run_kops_alone)
    cluster.delete_all(cluster.topics(prefix))


def test_surviving_keys_count_as_evidence(scene):
    found = scene.verified("right")
    assert (found["verdict"], counts(found), findings(found)) == ("proven", (KEYS, 0, 0, 0), [])
    assert found["witnesses"] == {
        "surviving": KEYS,
        "equal": KEYS,
        "expected": KEYS,
        "damaged": [],
        "written_by_kops": 0,
        "unclear": 0,
        "missing": 0,
        "output": None,
    }
    assert (found["last_proven"]["keys"], sum(found["last_proven"]["offsets"].values())) == (KEYS, 2 * KEYS)


def test_what_verify_has_proven_is_remembered_for_this_state_file_only(scene, tmp_path):
    shown = scene.kops("right", "verify").ok()
    assert f"records of {scene.twins['right'].program.topic}: {KEYS} proven" in shown.err
    changed = tmp_path / "changed.yaml"
    text = Path(scene.twins["right"].state_file).read_text()

    def last_proven(body: str) -> int | None:
        changed.write_text(body)
        asked = scene.kops("right", "query", "k0", "--from", "input", file=str(changed)).ok()
        return int(found[1]) if (found := re.search(r"proven on 20\S+ over (\d+) keys", asked.err)) else None

    assert last_proven(text) == KEYS
    assert last_proven(f"# the same but for this line\n{text}") == KEYS
    assert last_proven(json.dumps({**json.loads(text), "streams": {"version": "4.0"}})) is None


def test_surviving_keys_are_no_evidence_for_a_lost_partition(scene):
    scene.lose("lost", 1)
    kept = sum(entry.partition != 1 for entry in scene.twins["right"].view().values())
    shown = scene.kops("lost", "verify")
    assert f": {kept} proven, {KEYS - kept} computed" in shown.err
    found = scene.verified("lost", code=1)
    assert (found["verdict"], counts(found), found["missing"]) == ("computed", (kept, KEYS - kept, 0, 0), KEYS - kept)
    assert found["witnesses"]["surviving"] == kept
    damage = [Record(b"k0", struct.pack(">q", 7), START)]
    twin = scene.twins["lost"]
    twin.cluster.produce(twin.program.changelog, damage)
    number = twin.view()[b"k0"].partition
    refused = scene.kops("lost", "rebuild", "--yes")
    assert refused.code == 5
    assert "k0 of partition" in refused.err
    assert "computed 2, found 7" in refused.err
    assert "--damaged totals" in refused.err
    unnamed = twin.cluster.create(f"{twin.program.application}-joined-changelog", 2)
    done = scene.kops("lost", "rebuild", "--yes", "--damaged", f"totals:{number}").ok()
    assert f"{unnamed} (empty)" in done.err
    assert "can be started" not in done.err
    assert "- see that these stores are right: totals (" in done.err
    assert f"{twin.program.changelog}:1 is empty" in done.err
    found = scene.verified("lost")
    witnesses = found["witnesses"]
    assert witnesses["surviving"] + witnesses["written_by_kops"] == KEYS
    assert witnesses["written_by_kops"] > KEYS - kept
    assert (counts(found), found["last_proven"]) == ((witnesses["surviving"], witnesses["written_by_kops"], 0, 0), None)
    assert {key: entry.value for key, entry in twin.view().items()} == {f"k{n}".encode(): struct.pack(">q", 2) for n in range(KEYS)}


def test_records_that_another_tool_made_the_application_skip_are_not_computed_with_certainty(scene):
    found = scene.verified("skipped", code=1)
    assert (found["verdict"], found["different"]) == ("doubtful", 2)
    (differ,) = findings(found)
    assert (differ["check"], differ["facts"]["partitions"]) == ("keys_differ", [0])
    held = scene.twins["skipped"].view()
    scene.lose("skipped", 0)
    found = scene.verified("skipped", code=1)  # all that is left is equal
    left = sum(entry.partition != 0 for entry in held.values())
    assert (found["witnesses"]["equal"], found["witnesses"]["surviving"], found["different"]) == (left, left, 0)
    assert counts(found) == (left, 0, KEYS - left, 0)
    assert [finding["check"] for finding in findings(found)] == ["differed_before"]


def test_what_a_changelog_has_lost_is_said_wherever_it_counts(scene, tmp_path):
    twin = scene.twins["skipped"]  # of which partition 0 is lost
    lost = f"partition 0 of {twin.program.changelog} has lost records"
    key = next(key for key, entry in scene.twins["right"].view().items() if entry.partition == 0)
    asked = scene.kops("skipped", "query", key.decode())
    assert (asked.code, lost in asked.err) == (1, True)
    moved = scene.kops("skipped", "repartition", "--partitions", "5", "--grow-inputs", "--dry-run").ok()
    assert f"{lost}: keys that nothing has written again since are missing there, and do not move" in moved.err
    folder = tmp_path / "snapshot"
    assert lost in scene.kops("skipped", "snapshot", "--to", folder).ok().err
    refused = scene.kops("skipped", "rebuild", "--from-snapshot", folder, "--yes")
    assert (refused.code, f"partition 0 of {twin.program.changelog} had lost every record" in refused.err) == (5, True)


def test_a_snapshot_of_a_lost_partition_deletes_what_has_come_back_and_says_so(scene, tmp_path):
    twin = scene.twins["right"]
    changelog, before, warning = twin.program.changelog, twin.view(), "delete the local state of"
    gone = {key for key, entry in before.items() if entry.partition == 2}

    def restore(folder: Path, *options: str) -> Outcome:
        return scene.run_kops("state", "restore", folder, "-B", twin.cluster.servers, *options)

    whole, lossy = tmp_path / "whole", tmp_path / "lossy"
    scene.kops("right", "snapshot", "--to", whole).ok()
    assert warning not in restore(whole, "--dry-run").ok().err
    scene.lose("right", 2)
    scene.kops("right", "snapshot", "--to", lossy).ok()
    plan = restore(whole, "--yes").ok()
    assert warning in plan.err  # local stores may have keys of that partition that the log forgot
    assert twin.view() == before
    plan = restore(lossy, "--yes").ok()
    assert f"when the snapshot was taken, partition 2 of {changelog} has lost records" in plan.err
    assert f"{len(gone)} removed" in plan.err + plan.out
    assert set(twin.view()) == before.keys() - gone
    tombstones = {record.key for record in twin.cluster.read(changelog) if record.value is None and record.partition == 2}
    assert tombstones == gone
    restore(whole, "--yes").ok()
    assert twin.view() == before


def test_lost_partition_for_which_nothing_is_computed_is_unclear(scene):
    twin = scene.twins["narrow"]
    (entry,) = twin.view().values()
    other = (entry.partition + 1) % PARTITIONS
    twin.cluster.produce(twin.program.changelog, [Record(b"gone", struct.pack(">q", 1), START, (), other)])
    scene.lose("narrow", other)
    found = scene.verified("narrow", code=7)
    assert (found["verdict"], counts(found), found["last_proven"]) == ("doubtful", (1, 0, 0, 0), None)
    (emptied,) = findings(found)
    assert (emptied["check"], emptied["subject"]) == ("emptied_partitions", twin.program.changelog)
    assert "nothing shows what was there" in emptied["summary"]


def test_a_query_of_the_input_says_what_kops_knows(scene):
    proven = scene.kops("right", "query", "k0", "--from", "input").ok()
    assert f": {KEYS} computed" in proven.err
    assert f"over {KEYS} keys" in proven.err
    moved = scene.kops("moved", "query", "k0", "--from", "input").ok()
    assert "doubtful: kops moved the application in" in moved.err


def test_an_application_that_began_later_than_its_topic_is_not_written(scene):
    found = scene.verified("started", code=7)
    assert found["verdict"] == "doubtful"
    assert found["witnesses"]["equal"] < found["witnesses"]["surviving"]
    refused = scene.kops("started", "rebuild", "--yes")
    assert refused.code == 5
    assert "surviving keys differ" in refused.err
    scene.lose("started")
    refused = scene.kops("started", "rebuild", "--dry-run")
    assert (refused.code, "a tool set the offset of" in refused.err, "to 5 on" in refused.err) == (5, True, True)


def test_where_nothing_survives_keys_are_computed_and_not_proven(scene):
    scene.lose("right")
    plan = scene.kops("right", "rebuild", "--dry-run").ok()
    assert f": {KEYS} computed" in plan.err
    assert "proven on 20" in plan.err
    scene.lose("skipped")
    against = scene.kops("right", "diff", "--against", scene.twins["skipped"].program.application)
    assert (against.code, "neither changelog has any record, so nothing was compared" in against.err) == (7, True)
    assert "hold the same" not in against.err


def test_windows_that_the_file_lets_expire_too_early_are_no_proof(scene, tmp_path):
    assert scene.verified("minutes")["keys"] == 40
    body = json.loads(Path(scene.twins["minutes"].state_file).read_text())
    body["stores"]["totals"]["window"]["retention"] = "60s"
    short = tmp_path / "short.yaml"
    short.write_text(json.dumps(body))
    found = scene.kops("minutes", "verify", "-o", "json", file=str(short))
    assert (found.code, found.json[0]["verdict"], counts(found.json[0])) == (7, "doubtful", (1, 0, 0, 0))
    assert found.json[0]["expired_windows"] == 39
    scene.lose("minutes")
    refused = scene.kops("minutes", "rebuild", "--yes", file=str(short))
    assert (refused.code, "window.retention" in refused.err) == (5, True)


def test_a_window_that_a_restarted_application_has_counted_is_never_removed(scene):
    found = scene.verified("restarted", code=7)
    assert (found["unexpected"], found["late_records"], found["verdict"]) == (1, 1, "doubtful")
    twin = scene.twins["restarted"]
    before = twin.view()
    refused = scene.kops("restarted", "rebuild", "--accept-doubtful", "--yes")
    assert (refused.code, "records came late" in refused.err) == (5, True)
    scene.lose("restarted")
    refused = scene.kops("restarted", "rebuild", "--yes")
    assert (refused.code, "had forgotten its stream time" in refused.err) == (5, True)
    assert len(before) == 2


def test_a_changelog_that_cannot_be_restored_is_not_appended_to(scene):
    twin = scene.twins["minutes"]
    twin.cluster.produce(twin.program.changelog, [Record(b"short", None, START, (), 0)])
    refused = scene.kops("minutes", "rebuild", "--yes")
    assert (refused.code, "Kafka Streams ends when it restores them" in refused.err, "--write replace" in refused.err) == (5, True, True)


def test_move_by_kops_contradicts_once_the_application_has_resumed(scene):
    twin = scene.twins["moved"]
    assert struct.pack(">q", 3) in {entry.value for entry in twin.view().values()}  # counted twice
    found = scene.verified("moved", code=7)
    (moved,) = (finding for finding in found["findings"] if finding["check"] == "moved_by_kops")
    assert (found["verdict"], moved["facts"]["journal"][:2]) == ("doubtful", "20")
    assert "kops moved the application in" in moved["summary"]
    scene.lose("moved")
    refused = scene.kops("moved", "rebuild", "--yes")
    assert (refused.code, "kops moved the application in" in refused.err) == (5, True)
