"""Plan files and journal entries as kops writes them, written on a real cluster: still shown, carried out, undone and finished.

Each file holds what ``--plan-out`` saved, the entry as it was opened and as it was closed, the entry of its undo, what ``journal show``
printed, and what the groups had committed before, after and when it was undone.
"""

import json

import pytest

from kops.core.plan import plan_document, plan_from_json
from kops.operations.protocol import registry
from kops.operations.streams.reset import ResetArguments
from support.earlier_plans import approval, journal_files, journaled, read_earlier, saved, without_digest
from support.groups_in_memory import GroupsInMemory

EARLIER = read_earlier(__file__)
OFFSETS_ALONE = [name for name in EARLIER if name != "streams_reset"]
"""Those that change nothing but groups."""


@pytest.fixture(params=OFFSETS_ALONE)
def earlier(request):
    return EARLIER[request.param]


@pytest.fixture
def kops(run_kops):
    return lambda *words: run_kops(*words, "-B", "127.0.0.1:9")


@pytest.fixture
def cluster(monkeypatch):
    """Let kops find a cluster in memory with these groups."""

    def use(earlier, groups):
        made = GroupsInMemory.of_json(earlier["bounds"], groups, earlier["plan"]["cluster_id"])
        monkeypatch.setattr("kops.gateways.kafka.Kafka", lambda *_, **__: made)
        return made

    return use


@pytest.mark.parametrize("name", EARLIER)
def test_entry_is_shown_as_before(name, kops):
    earlier = EARLIER[name]
    entry = journaled(earlier["closed"])
    assert kops("journal", "show", entry, "-o", "csv").ok().out == earlier["shown"]
    shown = kops("journal", "show", entry, "-o", "json").ok().json
    assert shown["plan"] == without_digest(earlier["plan"])
    assert kops("journal", "list").ok().out.count("done") == 1


def test_plan_file_is_applied(earlier, kops, cluster, tmp_path):
    world = cluster(earlier, earlier["before"])
    file = saved(tmp_path / "plan.json", earlier["plan"])
    assert kops("apply", file, "--dry-run", "-o", "json").ok().json == earlier["plan"]
    kops("apply", file, *approval(earlier["plan"])).ok()
    assert world.as_json() == earlier["after"]


def test_plan_file_is_refused_once_the_group_moved(earlier, kops, cluster, tmp_path):
    changed = {name: {"orders:0": [9, "", None], "payments:1": [9, "", None]} for name in {**earlier["before"], **earlier["after"]}}
    world = cluster(earlier, changed)
    file = saved(tmp_path / "plan.json", earlier["plan"])
    before = world.as_json()
    assert kops("apply", file, *approval(earlier["plan"])).code == 5
    assert world.as_json() == before


def test_entry_is_undone_and_done_again(earlier, kops, cluster):
    world = cluster(earlier, earlier["after"])
    entry = journaled(earlier["closed"])
    plan = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    kops("undo", entry, *approval(plan)).ok()
    assert world.as_json() == earlier["undone"]
    again = kops("undo", "last", "--dry-run", "-o", "json").ok().json
    kops("undo", "last", *approval(again)).ok()
    written = {name: offsets for name, offsets in earlier["after"].items() if name in earlier["before"]}
    assert {name: offsets for name, offsets in world.as_json().items() if name in written} == written


def test_entry_of_an_undo_is_undone(earlier, kops, cluster):
    world = cluster(earlier, earlier["undone"])
    journaled(earlier["closed"] | {"undone_by": earlier["undo"]["id"]})
    entry = journaled(earlier["undo"])
    plan = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    kops("undo", entry, *approval(plan)).ok()
    assert {name: offsets for name, offsets in world.as_json().items() if offsets} == earlier["after"]


def test_crashed_entry_is_finished_from_anywhere(earlier, kops, cluster):
    """Nothing was done, the first group was done, or all was: the rest is done, or there is nothing left to do."""
    done = list(earlier["after"])[:1] or list(earlier["before"])[:1]
    partly = {name: earlier["after" if name in done else "before"].get(name) for name in {**earlier["before"], **earlier["after"]}}
    for groups in (earlier["before"], {name: offsets for name, offsets in partly.items() if offsets is not None}, earlier["after"]):
        world = cluster(earlier, groups)
        entry = journaled(earlier["opened"])
        plan = kops("journal", "finish", entry, "--dry-run", "-o", "json").ok().json
        kops("journal", "finish", entry, *approval(plan)).ok()
        assert world.as_json() == earlier["after"]
        assert kops("journal", "list", "-o", "json").ok().json[-1]["status"] == "finished"
        for file in journal_files():
            file.unlink()


def test_crashed_entry_is_undone(earlier, kops, cluster):
    world = cluster(earlier, earlier["after"])
    entry = journaled(earlier["opened"])
    plan = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    kops("undo", entry, *approval(plan)).ok()
    assert world.as_json() == earlier["undone"]


def test_reset_of_an_application_is_undone_with_its_stream_time(kops, cluster):
    earlier = EARLIER["streams_reset"]
    world = cluster(earlier, earlier["after"])
    entry = journaled(earlier["closed"])
    kops("undo", entry, "--yes", "--accept-loss").ok()
    assert world.as_json() == earlier["before"]


def test_arguments_of_a_reset_round_trip():
    body = without_digest(EARLIER["streams_reset"]["plan"])
    plan = registry.typed(plan_from_json(body))
    assert isinstance(plan.arguments, ResetArguments)
    assert json.loads(json.dumps(plan.as_json())) == body


@pytest.mark.parametrize("state", ["before", "after"])
def test_crashed_reset_is_finished(kops, cluster, state):
    """The topics are gone, and the offsets have moved or not."""
    earlier = EARLIER["streams_reset"]
    world = cluster(earlier, earlier[state])
    entry = journaled(earlier["opened"])
    plan = kops("journal", "finish", entry, "--dry-run", "-o", "json").ok().json
    kops("journal", "finish", entry, *approval(plan)).ok()
    assert world.as_json() == earlier["after"]


def test_damaged_arguments_of_a_reset_are_refused(kops, cluster, tmp_path):
    earlier = EARLIER["streams_reset"]
    cluster(earlier, earlier["before"])
    body = without_digest(earlier["plan"])
    file = saved(tmp_path / "plan.json", plan_document(plan_from_json(body | {"arguments": {"application": "app"}})))
    assert kops("apply", file, *approval(body)).code == 2
