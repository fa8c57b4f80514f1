"""What kops reads in its journal of the applications whose state it computes."""

from types import SimpleNamespace

import pytest

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.moves import group_moves
from kops.core.plan import Plan
from kops.core.statefile import parse_state_file
from kops.operations.offsets.arguments import Moves
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.judge.journal import read_past
from support.verdicts import DOUBT, worst

AT = TopicPartition("in", 0)
OWN = {"from": {"topic": "in", "key": "string", "value": "long"}, "aggregate": {"count": True}}
KEYED = {**OWN, "key_by": "value", "key_as": "long"}
FILE = parse_state_file("f", {"application": "app", "stores": {"own": OWN, "keyed": {**KEYED, "repartition": "app-keyed-repartition"}}})


@pytest.fixture
def past(tmp_path):
    """Write entries, and return what kops makes of them: ``past(entry, ..., committed=10)``."""
    journal = Journal(tmp_path / "journal")
    services = SimpleNamespace(
        directories=SimpleNamespace(state=tmp_path), kafka=SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id="here"))
    )

    def read(*entries, committed=10, start=0, since="", until=""):
        for operation, arguments, *more in entries:
            plan = Plan(operation, "", more[0] if more else "here", "", (), arguments=arguments)
            journal.close(journal.open(plan), EntryStatus.DONE, ())
        return read_past(services, "app", FILE.stores, {AT: CommittedOffset(committed)}, {AT: start}, since=since, until=until)

    return read


def offset(number):
    return None if number is None else {"offset": number, "metadata": "", "leader_epoch": None}


def move(before, after, group="app", operation="offsets.move"):
    commits = (None if each is None else CommittedOffset(each) for each in (before, after))
    prior, write = ({AT: each} for each in commits)
    return operation, Moves((group_moves(group, "EMPTY", {at: (each, "") for at, each in write.items()}, prior),)).as_json()


def reset(before, after):
    return "streams.reset", {"application": "app", "offsets": move(before, after)[1], "topics": []}


def computed(operation="state.rebuild", stores=("own", "keyed"), commit=(), contents=None):
    writes = {name: StoreWrite(f"app-{name}-changelog", "", contents or {}) for name in stores}
    write, prior = ({str(AT): offset(number)} for number in commit[::-1]) if commit else ({}, {})
    arguments = StateArguments("app", exactly_once=False, master="local[*]", stores=writes)
    return operation, {**arguments.as_json(), "commit": write, "prior": prior}


def repartition(grow=(), commit=()):
    arguments = computed("state.repartition")[1]
    commits = {f"{topic}:0": offset(0) for topic in (*commit, "app-keyed-repartition")}
    return "state.repartition", {**arguments, "grow": dict.fromkeys(grow, 4), "commit": commits, "repartitions": ["app-keyed-repartition"]}


def restore(cluster, application):
    body = {**computed("state.restore")[1], "taken_of": {"cluster_id": cluster, "application": application}, "grow": {}}
    return "state.restore", body


@pytest.mark.parametrize(
    ("entries", "contradicted"),
    [
        ([], set()),
        ([move(3, 5)], {"own", "keyed"}),
        ([move(3, None, operation="offsets.delete")], {"own", "keyed"}),
        ([move(3, 5, group="another")], set()),
        ([(*move(3, 5), "another cluster")], set()),
        ([move(3, 5), move(5, 3)], set()),
        ([move(3, 5), computed()], set()),
        ([move(3, 5), computed(stores=("own",))], {"keyed"}),
        ([computed(), move(3, 5)], {"own", "keyed"}),
        ([computed(stores=("own",), commit=(3, 7))], {"keyed"}),
        ([reset(9, 0)], set()),
        ([reset(9, 4)], {"own", "keyed"}),
        ([move(3, 5), reset(9, 0)], set()),
        ([repartition()], set()),
        ([repartition(grow=["in"])], {"own"}),
        ([repartition(commit=["in"])], {"own", "keyed"}),
        ([repartition(grow=["in"]), computed()], set()),
        ([restore("here", "app")], set()),
        ([restore("there", "app")], {"own", "keyed"}),
        ([restore("here", "older")], {"own", "keyed"}),
    ],
)
def test_what_kops_did_contradicts_computing_from_the_log_start(past, entries, contradicted):
    found = past(*entries)
    assert set(found.findings) == contradicted
    assert all(worst(some) == DOUBT and "journal 20" in some[0].summary for some in found.findings.values())
    assert not found.apart


def test_a_reset_to_the_log_start_of_a_trimmed_topic_is_no_contradiction(past):
    assert not past(reset(9, 4), start=4).findings


def test_where_the_state_file_says_that_the_application_began_is_no_contradiction(past):
    assert not past(move(None, 4), start=4).findings
    assert past(move(None, 5), start=4).findings
    assert past(move(3, 4), start=4).findings, "it held something before"


def test_what_was_before_a_snapshot_is_in_it(past):
    assert past(move(3, 5), repartition(commit=["in"]), since="2000-01-01T00:00:00.000Z").findings
    assert not past(since="9999-01-01T00:00:00.000Z").findings


def test_what_was_done_after_a_snapshot_does_not_contradict_it(past):
    found = past(move(3, 5), computed(contents={"0": {"records": 5, "tombstones": 1}}), move(3, 5), until="2000-01-01T00:00:00.000Z")
    assert (found.findings, found.written, found.made) == ({}, {}, {})
    assert past(until="9999-01-01T00:00:00.000Z").findings


def test_where_nothing_ran_since_the_move_the_changelog_is_of_other_offsets(past):
    found = past(move(3, 10))
    assert (found.apart, found.findings) == ({"own", "keyed"}, {})
    found = past(move(10, 20), committed=20)
    assert (found.apart, found.findings) == ({"own", "keyed"}, {})


def test_what_kops_wrote_is_counted_by_partition(past):
    some, more = {"0": {"records": 5, "tombstones": 1}}, {"0": {"records": 2, "tombstones": 0}, "1": {"records": 7, "tombstones": 0}}
    found = past(computed(stores=("own",), contents=some), computed("state.into", stores=("own",), contents=more))
    assert found.written == {"app-own-changelog": {0: 6, 1: 7}}


def test_what_kops_wrote_and_moved_later_may_be_in_any_partition(past):
    """The moved keys keep their values: they show nothing in their new partitions either."""
    some = {"0": {"records": 5, "tombstones": 1}}
    moved = {"0": {"records": 3, "tombstones": 0}, "1": {"records": 9, "tombstones": 0}}

    def repartitioned():
        operation, arguments = repartition()
        writes = {"own": StoreWrite("app-own-changelog", "", moved)}
        stores = StateArguments("app", exactly_once=False, master="local[*]", stores=writes).as_json()["stores"]
        return operation, {**arguments, "stores": stores}

    assert past(repartitioned()).written == {}, "the application wrote them"
    assert past(computed(stores=("own",), contents=some), repartitioned()).written == {"app-own-changelog": {0: 3, 1: 4}}
