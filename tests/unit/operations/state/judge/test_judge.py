"""Of which keys a judged store says that they are proven: none without a witness, whatever was found."""

from contextlib import nullcontext
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from kops.core.errors import ExitCode
from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.statefile import parse_state_file
from kops.core.streams.verdict import (
    ALL_KEYS,
    COMPUTED,
    DOUBTFUL,
    IMPOSSIBLE,
    KEYS_ANYWHERE,
    KEYS_THERE,
    PROVEN,
    WORDS,
    doubt,
    obstacle,
    remark,
)
from kops.operations.state.compute import UNKNOWN, computed_store
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.judge import judge as module
from kops.operations.state.judge.commits import Commits
from kops.operations.state.judge.journal import OwnHistory
from kops.operations.state.judge.judge import judge, remember_proofs
from kops.operations.state.rules.past import remember_difference, remembered
from kops.operations.state.rules.table import TableRun
from kops.operations.state.rules.witnesses import Witnesses
from kops.spark.staging import outputs
from kops.spark.staging.outputs import EXTRA, LOST, OTHER, SAME, SILENT
from kops.spark.staging.stage import StagedPartitions
from kops.spark.stores.jobs import Counts

AT = TopicPartition("in", 0)
READ, END = 100, 1_000
SOURCE = {"topic": "in", "key": "string", "value": "long"}
SHOWN = {"output": "out"}


def parsed(**fields):
    body = {"from": SOURCE, "aggregate": {"count": True}, **fields}
    return parse_state_file("f", {"application": "app", "streams": {"version": "4.3"}, "stores": {"own": body}})


@pytest.fixture
def engine(tmp_path):
    services = SimpleNamespace(
        directories=SimpleNamespace(state=tmp_path),
        kafka=SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id="here")),
        progress=SimpleNamespace(step=lambda _text: None),
        now=lambda: datetime(2026, 11, 20, tzinfo=timezone.utc),
    )
    return SimpleNamespace(
        services=services,
        seen=lambda *_place: None,
        scan=lambda *_asked: None,
        session=None,
        kafka=lambda: None,
        reading=lambda *_ranges: nullcontext(),
    )


@pytest.fixture
def judged(engine, monkeypatch):
    """Judge a store: ``judged(live, keys, actions)``; both by partition of its changelog."""

    def run(
        live,
        keys,
        actions=None,
        *,
        written=None,
        damaged=(),
        ends=None,
        starts=None,
        findings=(),
        commits=(),
        noted=None,
        output=None,
        apart=False,
        custom=False,
        **fields,
    ):
        """Judge it.

        :param ends: of the changelog's partitions
        :param starts: the same; those that begin above 0 have lost records
        :param findings: of the facts
        :param commits: findings
        :param output: verdicts of its output topic on keys, by partition
        """
        if custom:
            fields |= {"key_by": "value", "key_as": "long", "partitioner": "custom"}
        file = parsed(**(SHOWN if output is not None else {}), **fields)
        numbers = {*live, *(number for number in actions or {} if number != UNKNOWN)}
        bounds = {number: Bounds((starts or {}).get(number, 1), (ends or {}).get(number, END)) for number in numbers}
        facts = StoreFacts(
            file.stores[0],
            {AT: Bounds(0, READ)},
            bounds,
            {"cleanup.policy": "compact"},
            tuple(findings),
            tasks=len(numbers),
            damaged=frozenset(damaged),
        )
        counts = Counts(read=READ, dropped={}, keys=keys, mixed=0, noted=noted or {}, live=live, staged=StagedPartitions({}, actions or {}))
        found = computed_store(facts, "stage", counts, TableRun(file, file.stores[0], counts, facts.settings))
        if apart:
            found = module.replace(found, witnesses=Witnesses(keys))
        monkeypatch.setattr(module, "differing_keys", lambda *_args, **_options: [])
        monkeypatch.setattr(outputs, "judged_keys", lambda *_args: None)
        monkeypatch.setattr(outputs, "verdicts", lambda _keys: output)
        monkeypatch.setattr(outputs, "contradicting", lambda *_args: [])
        past = OwnHistory(written={"app-own-changelog": written or {}})
        cut = InputOffsets({AT: READ}, {AT: CommittedOffset(READ)})
        return judge(engine, file, found, past, commits=Commits({"own": tuple(commits)}), cut=cut)

    return run


def counts(found):
    return tuple(found.judgement[word] for word in WORDS)


def checks(found):
    return [finding.check for finding in found.verdict.findings]


ORDER = doubt("record_order", "in which order is not known")
MOVED = doubt("moved_by_tool", "a tool moved it", settled_by=ALL_KEYS)
TWICE = doubt("moved_by_tool", "records counted twice", settled_by=KEYS_THERE)
KEYS = doubt("other_keys", "its serde may write other keys", settled_by=KEYS_ANYWHERE)
RESTARTS, IN_ORDER = (doubt("depends_on", "keys depend on it", on=on) for on in (["restarts"], ["order"]))
GONE = obstacle("lost_records", "records of the input are gone")
BUFFER = doubt("lost_buffer", "its buffer is empty", subject="buffer")


@pytest.mark.parametrize(
    ("given", "word", "numbers"),
    [
        ({}, PROVEN, (10, 0, 0, 0)),
        ({"findings": [ORDER]}, PROVEN, (10, 0, 0, 0)),
        ({"findings": [RESTARTS]}, PROVEN, (10, 0, 0, 0)),
        ({"findings": [GONE]}, PROVEN, (10, 0, 0, 0)),
        ({"findings": [BUFFER]}, DOUBTFUL, (10, 0, 0, 0)),
        ({"commits": [MOVED]}, PROVEN, (10, 0, 0, 0)),
        ({"written": {0: 4}}, COMPUTED, (6, 4, 0, 0)),
        ({"written": {0: 4}, "findings": [ORDER]}, DOUBTFUL, (6, 0, 4, 0)),
        ({"written": {0: 4}, "commits": [MOVED]}, DOUBTFUL, (6, 0, 4, 0)),
        ({"damaged": [1]}, COMPUTED, (5, 5, 0, 0)),
        ({"damaged": [1], "findings": [GONE]}, IMPOSSIBLE, (5, 0, 0, 5)),
        ({"apart": True}, COMPUTED, (0, 10, 0, 0)),
        ({"apart": True, "findings": [ORDER]}, DOUBTFUL, (0, 0, 10, 0)),
    ],
)
def test_keys_that_survived_are_proven_but_those_of_kops_and_of_damaged_partitions(judged, given, word, numbers):
    found = judged({0: 5, 1: 5}, 10, **given) if "written" not in given else judged({0: 10}, 10, **given)
    assert (found.word, counts(found)) == (word, numbers)


@pytest.mark.parametrize(
    ("findings", "commits", "word", "numbers"),
    [
        ((), (), COMPUTED, (6, 4, 0, 0)),
        ([remark("other_bytes", "bytes may differ")], (), COMPUTED, (6, 4, 0, 0)),
        ([ORDER], (), DOUBTFUL, (6, 0, 4, 0)),
        ([GONE], (), IMPOSSIBLE, (6, 0, 0, 4)),
        ([KEYS], (), COMPUTED, (6, 4, 0, 0)),
        ([IN_ORDER], (), DOUBTFUL, (6, 0, 4, 0)),
        ([RESTARTS], (), DOUBTFUL, (0, 0, 10, 0)),
        ((), [TWICE], DOUBTFUL, (6, 0, 4, 0)),
        ((), [MOVED], DOUBTFUL, (6, 0, 4, 0)),
    ],
    ids=["nothing", "remark", "doubt", "obstacle", "settled by its code", "order", "restarts", "a partition that lost all", "any key"],
)
def test_lost_keys_are_what_the_findings_leave_of_them(judged, findings, commits, word, numbers):
    """What the code does, keys of any partition show; what happened to a partition that lost all its keys, none does."""
    found = judged({0: 6, 1: 0}, 10, {1: {"added": 4}}, findings=findings, commits=commits)
    assert (found.word, counts(found)) == (word, numbers)


def test_a_hundred_keys_of_each_partition_settle_what_happened_there(judged):
    found = judged({0: 100, 1: 100}, 250, {0: {"added": 20}, 1: {"added": 30}}, commits=[TWICE])
    assert (found.word, counts(found)) == (COMPUTED, (200, 50, 0, 0))
    found = judged({0: 100, 1: 99}, 249, {0: {"added": 20}, 1: {"added": 30}}, commits=[TWICE])
    assert (found.word, counts(found)) == (DOUBTFUL, (199, 0, 50, 0))


def test_a_key_that_differs_puts_those_that_are_lost_in_doubt_and_not_the_equal_ones(judged):
    found = judged({0: 6, 1: 0}, 10, {0: {"changed": 1}, 1: {"added": 4}})
    assert (found.word, counts(found), checks(found)) == (DOUBTFUL, (5, 0, 5, 0), ["keys_differ"])
    assert found.outcome is ExitCode.FAILED, "nothing else is in doubt"
    both = judged({0: 6, 1: 0}, 10, {0: {"changed": 1}, 1: {"added": 4}}, findings=[ORDER])
    assert (counts(both), both.outcome) == ((5, 0, 5, 0), ExitCode.UNCLEAR)


def test_keys_that_should_not_be_there_are_counted_beside_the_computed_ones(judged):
    found = judged({0: 12}, 10, {0: {"removed": 2}})
    assert (found.word, counts(found)) == (DOUBTFUL, (10, 0, 2, 0))
    damaged = judged({0: 12}, 10, {0: {"removed": 2}}, damaged=[0])
    assert (damaged.word, counts(damaged)) == (COMPUTED, (0, 10, 0, 0)), "a damaged partition contradicts nothing, and proves nothing"


def test_keys_that_are_missing_without_a_loss_are_in_doubt(judged):
    found = judged({0: 6}, 10, {0: {"added": 4}}, starts={0: 0})
    assert (found.word, counts(found), checks(found)) == (DOUBTFUL, (6, 0, 4, 0), ["keys_missing"])


@pytest.mark.parametrize(
    ("live", "actions", "written", "numbers"),
    [
        (10, {}, 4, (6, 4, 0, 0)),
        (10, {}, 40, (0, 10, 0, 0)),
        (10, {"changed": 2}, 10, (0, 10, 0, 0)),
        (10, {"changed": 2}, 2, (6, 4, 0, 0)),
        (10, {"changed": 3}, 2, (5, 0, 5, 0)),
        (7, {"added": 3, "changed": 3}, 2, (2, 0, 8, 0)),
    ],
)
def test_what_kops_wrote_is_no_witness_even_if_other_keys_differ(judged, live, actions, written, numbers):
    assert counts(judged({0: live}, 10, {0: actions}, written={0: written})) == numbers


def test_an_earlier_comparison_that_found_keys_different_is_a_doubt_about_lost_ones(judged, engine):
    remember_difference(engine.services, parsed(), parsed().stores[0], {0: 1}, 5)
    found = judged({0: 5}, 10, {0: {"added": 5}})
    assert (found.word, counts(found), checks(found)) == (DOUBTFUL, (5, 0, 5, 0), ["differed_before"])
    assert counts(judged({0: 10}, 10)) == (10, 0, 0, 0)


LOST_ALL = {0: {"added": 6}, 1: {"added": 4}}
SHOWS_ALL = {0: {LOST: 6}, 1: {LOST: 4}}


@pytest.mark.parametrize(
    ("output", "given", "numbers"),
    [
        (SHOWS_ALL, {}, (10, 0, 0, 0)),
        (SHOWS_ALL, {"findings": [ORDER]}, (10, 0, 0, 0)),
        (SHOWS_ALL, {"findings": [KEYS]}, (10, 0, 0, 0)),
        (SHOWS_ALL, {"findings": [BUFFER]}, (10, 0, 0, 0)),
        ({0: {LOST: 6}, 1: {LOST: 3, SILENT: 1}}, {}, (9, 1, 0, 0)),
        ({0: {LOST: 6}, 1: {SILENT: 4}}, {"findings": [GONE]}, (6, 0, 0, 4)),
        ({0: {LOST: 6}, 1: {LOST: 3, OTHER: 1}}, {}, (0, 0, 10, 0)),
        ({0: {LOST: 6}, 1: {LOST: 4}, None: {EXTRA: 1}}, {}, (0, 0, 10, 0)),
        (SHOWS_ALL, {"commits": [MOVED]}, (0, 0, 10, 0)),
        (SHOWS_ALL, {"commits": [TWICE]}, (0, 0, 10, 0)),
        (SHOWS_ALL, {"ends": {0: END, 1: 3}}, (6, 4, 0, 0)),
        (SHOWS_ALL, {"ends": {0: END, 1: 0}, "starts": {1: 0}}, (10, 0, 0, 0)),
        (SHOWS_ALL, {"starts": {1: 0}}, (0, 0, 10, 0)),
        (SHOWS_ALL, {"apart": True}, (0, 10, 0, 0)),
    ],
    ids=[
        "it shows all",
        "an order that it shows",
        "keys that it shows",
        "its buffer is another matter",
        "one is not certain",
        "what cannot be computed",
        "another value",
        "a key too many",
        "records were skipped",
        "records counted twice",
        "a partition that was reset",
        "a log that is new",
        "a partition that lost nothing",
        "other offsets",
    ],
)
def test_an_output_topic_is_a_witness_of_lost_keys_unless_the_application_may_have_lost_them(judged, output, given, numbers):
    """It has what the store once held: after a reset, keys that were not written again are still there."""
    found = judged({0: 0, 1: 0}, 10, LOST_ALL, output=output, **given)
    assert counts(found) == numbers


def test_an_output_topic_is_none_for_a_journal_that_speaks_against_it(judged):
    carried = doubt("carried_over", "its state was carried over", settled_by=ALL_KEYS)
    assert counts(judged({0: 0, 1: 0}, 10, LOST_ALL, output=SHOWS_ALL, findings=[carried])) == (0, 0, 10, 0)


def test_an_output_topic_counts_no_key_twice(judged):
    whole = judged({0: 5}, 8, {0: {"added": 3}}, output={0: {SAME: 5, LOST: 3}})
    assert (counts(whole), whole.word) == ((8, 0, 0, 0), PROVEN)
    assert counts(judged({0: 5}, 8, {0: {"added": 3}}, output={0: {SAME: 4, LOST: 3, SILENT: 1}})) == (8, 0, 0, 0)
    assert counts(judged({0: 5}, 8, {0: {"added": 3, "changed": 1}}, output={0: {SAME: 5, LOST: 3}})) == (4, 0, 4, 0)
    own = judged({0: 8}, 8, {}, written={0: 3}, output={0: {SAME: 8}})
    assert (counts(own), own.word) == ((8, 0, 0, 0), PROVEN), "another witness than kops itself"
    damaged = judged({0: 5}, 8, {0: {"added": 3}}, damaged=[0], output={0: {SAME: 5, LOST: 3}})
    assert counts(damaged) == (8, 0, 0, 0)
    unclear = judged({0: 5}, 8, {0: {"added": 3, "changed": 1}}, written={0: 5}, output={0: {SAME: 5, LOST: 3}})
    assert counts(unclear) == (0, 8, 0, 0)


def test_a_key_whose_partition_is_not_known_is_not_proven(judged):
    found = judged({0: 5}, 8, {UNKNOWN: {"added": 3}}, custom=True, output={0: {SAME: 5}, UNKNOWN: {LOST: 3}})
    assert counts(found) == (5, 3, 0, 0)


def remembered_after(engine, found, **fields):
    remember_proofs(engine.services, parsed(**fields), [found], {AT: READ}, at="", stands_still=True)
    return remembered(engine.services, parsed(**fields), parsed(**fields).stores[0])


def test_only_a_store_whose_keys_all_survived_is_remembered_as_proven(judged, engine):
    """A later comparison cannot rest on an output topic: it does not show what happened since."""
    assert remembered_after(engine, judged({0: 8}, 8, written={0: 3})) is None
    own = judged({0: 8}, 8, written={0: 3}, output={0: {SAME: 8}})
    assert own.word == PROVEN
    assert remembered_after(engine, own, **SHOWN) is None
    assert remembered_after(engine, judged({0: 8}, 8, findings=[BUFFER])) is None
    assert remembered_after(engine, judged({0: 0}, 0)) is None
    proof = remembered_after(engine, judged({0: 8}, 8))
    assert (proof.keys, proof.at[:10]) == (8, "2026-11-20")


def test_a_proof_settles_what_happened_before_it_and_not_after(judged, engine):
    assert remembered_after(engine, judged({0: 8}, 8)) is not None
    for when, numbers in (("2026-11-19T00:00:00.000Z", (5, 3, 0, 0)), ("2026-11-21T00:00:00.000Z", (5, 0, 3, 0))):
        moved = doubt("moved_by_tool", "a tool moved it", settled_by=ALL_KEYS, time=when)
        assert counts(judged({0: 5}, 8, {0: {"added": 3}}, commits=[moved])) == numbers


def test_what_is_reported(judged):
    found = judged({0: 6, 1: 0}, 10, {1: {"added": 4}}, findings=[ORDER])
    assert found.explained[:2] == [
        "own: 10 keys from 100 records of in: 6 proven, 4 doubtful",
        "own: doubtful: in which order is not known",
    ]
    reported = found.reported
    assert list(reported) == [
        "verdict",
        "proven",
        "computed",
        "doubtful",
        "impossible",
        "doubtful_keys",
        "findings",
        "witnesses",
        "last_proven",
        "read",
        "keys",
        "dropped",
    ]
    assert (reported["verdict"], reported["witnesses"]["equal"], reported["last_proven"]) == ("doubtful", 6, None)


def test_a_table_that_is_its_own_changelog_needs_no_witness(engine):
    file = parse_state_file(
        "f", {"application": "app", "streams": {"version": "4.3", "topology_optimization": "all"}, "stores": {"own": {"from": SOURCE}}}
    )
    facts = StoreFacts(file.stores[0], {AT: Bounds(0, READ)}, {0: Bounds(0, READ)}, {}, tasks=1)
    counted = Counts(read=READ, dropped={}, keys=7, mixed=0, noted={}, live={}, staged=StagedPartitions({}, {}))
    cut = InputOffsets({AT: READ}, {AT: CommittedOffset(READ)})
    found = judge(
        engine,
        file,
        computed_store(facts, "", counted, TableRun(file, file.stores[0], counted, {})),
        OwnHistory(),
        commits=Commits(),
        cut=cut,
    )
    assert (found.word, counts(found), found.witnesses, found.outcome) == (PROVEN, (7, 0, 0, 0), None, ExitCode.DONE)
