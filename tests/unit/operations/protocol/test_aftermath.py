"""What happened since an entry ended, derived from what it left behind: on a cluster of a few facts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.errors import OperationFailed, Refused, StateMoved
from kops.core.models import Bounds, CommittedOffset, Topic, TopicPartition
from kops.core.models import Partition as Part
from kops.core.plan import ItemResult, Status
from kops.operations.protocol.aftermath import Traces, look
from kops.operations.protocol.journal import EntryStatus
from kops.operations.protocol.journal_actions import entry_named, plan_undo
from kops.operations.protocol.registry import MUTATIONS
from kops.operations.protocol.run import carry_out

LOG, GROUP = "app-totals-changelog", "app"
ZERO, INPUT = TopicPartition(LOG, 0), TopicPartition("in", 0)


class World:
    """A changelog of one partition, and a group."""

    def __init__(self, services):
        self.ids, self.ends, self.committed = {LOG: "id-1"}, {ZERO: 8}, {INPUT: CommittedOffset(3)}
        self.services = services()
        kafka = self.services.kafka
        kafka.topics = SimpleNamespace(existing=self.existing)
        kafka.offsets = SimpleNamespace(bounds=lambda asked: {at: Bounds(0, self.ends[at]) for at in asked})
        kafka.groups = SimpleNamespace(committed=lambda ids, **_: dict.fromkeys(ids, self.committed))
        kafka.records = SimpleNamespace(read=self.read)

    def existing(self, names):
        return {name: replace(topic(name), topic_id=self.ids[name]) for name in names if name in self.ids}

    def read(self, ranges, **_):
        raise OperationFailed("records are not read here")


def topic(name):
    return Topic(name, (Part(0, 1, (1,), (1,)),))


@pytest.fixture
def world(services):
    return World(services)


@pytest.fixture
def undone(monkeypatch, mutation, journal, plan, world):
    """Carry a plan out that leaves traces; then make the plan that undoes it."""
    monkeypatch.setitem(MUTATIONS, "test.recorded", "this_test:MUTATION")
    monkeypatch.setitem(__import__("sys").modules, "this_test", SimpleNamespace(MUTATION=mutation))
    monkeypatch.setattr(mutation, "traces", lambda plan, results: Traces(logs=(LOG,), group=GROUP), raising=False)
    monkeypatch.setattr(mutation, "offsets_in_the_middle", lambda plan: {str(INPUT): [1, 3]}, raising=False)
    _, entry = carry_out(world.services, plan, mutation, approve=lambda shown: None, journal=journal)

    def undo(found=None, **options):
        return plan_undo(world.services, journal, found or journal.read(entry.id), **options)

    return undo


def test_where_nothing_happened_nothing_is_lost(undone, world, journal):
    assert undone().losses == ()
    assert journal.read("last").left == {"topics": {LOG: "id-1"}, "ends": {str(ZERO): 8}, "committed": {str(INPUT): 3}}
    world.ids.clear()
    assert undone().losses == ()  # there is nothing left to lose


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda world: world.ends.update({ZERO: 10}), f"{LOG} has 2 more records ({ZERO} from 8 to 10)"),
        (lambda world: world.committed.update({INPUT: CommittedOffset(4)}), f"group {GROUP} moved on: {INPUT} from 3 to 4"),
        (lambda world: world.committed.clear(), f"group {GROUP} moved on: {INPUT} from 3 to no commit"),
        (lambda world: world.committed.update({ZERO: CommittedOffset(1)}), f"group {GROUP} moved on: {ZERO} from no commit to 1"),
    ],
)
def test_what_happened_is_refused_or_shown(undone, world, happens, said):
    happens(world)
    with pytest.raises(StateMoved) as refused:
        undone()
    assert refused.value.details["losses"] == [said]
    assert "--accept-loss" in refused.value.hint
    assert undone(accept_loss=True).losses == (said,)


def test_another_topic_of_that_name_is_never_touched(undone, world):
    world.ids[LOG] = "id-2"
    with pytest.raises(Refused, match="deleted and created again since"):
        undone(accept_loss=True)


def test_losses_that_the_mutation_itself_tells(undone, mutation, monkeypatch):
    monkeypatch.setattr(mutation, "invert", lambda services, plan, results: replace(plan, losses=("a key",)), raising=False)
    with pytest.raises(StateMoved, match="a key"):
        undone()
    assert undone(accept_loss=True).losses == ("a key",)


def test_stopped_in_the_middle_it_may_have_got_anywhere_between(undone, world, journal, plan):
    stopped = journal.close(journal.open(plan), EntryStatus.INTERRUPTED, [ItemResult("a", Status.DONE)])
    world.ends[ZERO] = 99
    for offset in (1, 3):
        world.committed[INPUT] = CommittedOffset(offset)
        assert undone(stopped).losses == ()
    world.committed[INPUT] = CommittedOffset(4)
    with pytest.raises(StateMoved, match="in:0 from 3 to 4"):
        undone(stopped)


def test_what_finished_an_entry_left_what_counts(undone, world, journal, mutation, plan):
    stopped = journal.close(journal.open(plan), EntryStatus.INTERRUPTED, [])
    world.ends[ZERO] = 20
    carry_out(world.services, plan, mutation, approve=lambda shown: None, journal=journal, finishes=stopped.id)
    assert undone(journal.read(stopped.id)).losses == ()
    world.ends[ZERO] = 21
    with pytest.raises(StateMoved, match="1 more record "):
        undone(journal.read(stopped.id))


def test_last_is_of_this_cluster_and_an_entry_of_another_is_refused_first(undone, world, journal, plan, services):
    mine = journal.read("last")
    other = journal.open(replace(plan, cluster_id="cluster-2", context="prod"))
    assert entry_named(world.services, journal, "last").id == mine.id
    with pytest.raises(StateMoved, match="changed cluster cluster-2"):
        undone(other)
    with pytest.raises(Exception, match="no entries for this cluster"):
        entry_named(services("cluster-3"), journal, "last")


def test_a_mutation_without_traces_asks_nothing(services):
    assert look(services(), Traces()) == {}
