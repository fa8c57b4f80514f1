"""Journal entries as kops writes them, written on a real cluster: still shown, and undone where records were read as a group.

Each file holds the closed entry, what ``journal show`` printed, and for a reading the entry of its undo.
"""

import json

import pytest

from kops.core.plan import plan_from_json
from kops.operations.protocol import registry
from support.earlier_plans import journaled, read_earlier
from support.groups_in_memory import GroupsInMemory

EARLIER = read_earlier(__file__)
READINGS = ["consume", "consume_new_group"]


@pytest.fixture
def kops(run_kops):
    return lambda *words: run_kops(*words, "-B", "127.0.0.1:9")


@pytest.fixture
def cluster(monkeypatch):
    """Let kops find a cluster in memory, whose group has committed what a reading committed."""

    def use(earlier):
        plan = earlier["closed"]["plan"]
        commits = {item["target"]: [item["value"], "", None] for item in earlier["closed"]["results"]}
        groups = {plan["arguments"]["group"]: commits} if "group" in plan["arguments"] else {}
        made = GroupsInMemory.of_json(dict.fromkeys(commits, (0, 3)), groups, plan["cluster_id"])
        monkeypatch.setattr("kops.gateways.kafka.Kafka", lambda *_, **__: made)
        return made

    return use


@pytest.mark.parametrize("name", EARLIER)
def test_arguments_round_trip(name):
    body = EARLIER[name]["closed"]["plan"]
    plan = registry.typed(plan_from_json(body))
    assert not isinstance(plan.arguments, dict)
    assert json.loads(json.dumps(plan.as_json())) == body


@pytest.mark.parametrize("name", EARLIER)
def test_entry_is_shown_as_before(name, kops):
    entry = journaled(EARLIER[name]["closed"])
    assert kops("journal", "show", entry, "-o", "csv").ok().out == EARLIER[name]["shown"]
    assert kops("journal", "show", entry, "-o", "json").ok().json["plan"] == EARLIER[name]["closed"]["plan"]


@pytest.mark.parametrize("name", READINGS)
def test_reading_is_undone_as_before(name, kops, cluster):
    world = cluster(EARLIER[name])
    entry = journaled(EARLIER[name]["closed"])
    planned = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    expected = EARLIER[name]["undo"]["plan"]
    assert planned["arguments"] == expected["arguments"]
    assert (planned["items"], planned["guard"]) == (expected["items"], expected["guard"])
    kops("undo", entry, "--yes").ok()
    prior = EARLIER[name]["closed"]["plan"]["arguments"]["prior"]
    committed = {target: [one["offset"], one["metadata"], one["leader_epoch"]] for target, one in prior.items() if one}
    assert {group: offsets for group, offsets in world.as_json().items() if offsets} == (
        {expected["arguments"]["moves"][0]["group"]: committed} if committed else {}
    )


@pytest.mark.parametrize("name", READINGS)
def test_crashed_reading_is_undone_from_what_is_committed_now(name, kops, cluster):
    world = cluster(EARLIER[name])
    entry = journaled(EARLIER[name]["closed"] | {"status": "open", "ended": "", "results": []})
    assert kops("journal", "finish", entry, "--yes").code == 5, "its command is run again instead"
    undo = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    assert undo["warnings"][0].startswith("it was stopped in the middle")
    kops("undo", entry, "--yes").ok()
    assert (3, "", None) not in {tuple(one) for offsets in world.as_json().values() for one in offsets.values()}


def test_producing_is_not_undone(kops, cluster):
    cluster(EARLIER["produce"] | {"closed": EARLIER["produce"]["closed"] | {"results": []}})
    refused = kops("undo", journaled(EARLIER["produce"]["closed"]), "--yes")
    assert (refused.code, "cannot be undone" in refused.err) == (5, True)


@pytest.mark.parametrize("name", READINGS)
def test_damaged_arguments_are_refused(name, kops, cluster):
    cluster(EARLIER[name])
    body = EARLIER[name]["closed"]
    assert kops("undo", journaled(body | {"plan": body["plan"] | {"arguments": {"other": 1}}}), "--yes").code == 2
