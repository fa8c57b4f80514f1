"""A snapshot as the start of a program's tasks: what of their stores, and of those before them, it must have."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import Refused, UsageProblem
from kops.core.models import NewTopic
from kops.core.statefile import StateFile
from kops.core.streams.capture_file import read_capture
from kops.operations.state.from_snapshot import BaseSnapshot
from kops.operations.state.own_code.snapshot import refuse_start, restored_changelogs
from kops.operations.state.own_code.stores import _store
from kops.operations.state.snapshot import Manifest, SnapshotStore

CAPTURED = json.loads((Path(__file__).parents[3] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))


@pytest.fixture
def capture():
    """Two sub-topologies: `counts` and `sessions` in one, and `lengths` behind a repartition topic that the first writes."""
    found = read_capture(CAPTURED, "c.json")
    return replace(found, stores=tuple(store for store in found.stores if store.name in ("counts", "sessions", "lengths")))


def base(capture, *without, emptied=()):
    stores = [store for store in capture.stores if store.name not in without]
    cut = dict.fromkeys(emptied, (5, 5))
    kept = tuple(
        SnapshotStore(
            store.name,
            "key-value",
            NewTopic(store.changelog, 3, 1, {"cleanup.policy": "compact"}),
            dict(cut) if store.name == "counts" else {},
        )
        for store in stores
    )
    return BaseSnapshot(Path("/kept"), Manifest("many", "at_least_once", "here", "2026-11-20", "1", kept, (), {}, {}, {}))


def state_file(capture, name):
    return StateFile("c.json", "many", tuple(_store(capture, store) for store in capture.stores if store.name == name))


def changed(capture, name, **fields):
    return replace(capture, stores=tuple(replace(store, **fields) if store.name == name else store for store in capture.stores))


def test_stores_that_a_restore_fills(capture):
    refuse_start(capture, state_file(capture, "counts"), base(capture))
    number = capture.subtopology_of("counts").number
    assert restored_changelogs(capture, number, base(capture)) == {
        "many-counts-changelog": "/kept/stores/counts",
        "many-sessions-changelog": "/kept/stores/sessions",
    }


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"changelog": None}, "has no changelog"),
        ({"kind": "buffer"}, "is a buffer store"),
        ({"kind": "versioned"}, "is a versioned store"),
        ({"capacity": 10}, "forgets its oldest keys"),
        ({"headers": True}, "keeps headers"),
        ({"layers": ("com.acme.Store",)}, "of a class of the program itself"),
    ],
)
def test_another_store_of_the_same_task(capture, fields, why):
    with pytest.raises(Refused, match=f"their store sessions .*{why}") as refused:
        refuse_start(changed(capture, "sessions", **fields), state_file(capture, "counts"), base(capture))
    assert "leave out --from-snapshot" in refused.value.hint


def test_a_store_that_the_snapshot_lacks_or_had_lost(capture):
    with pytest.raises(UsageProblem, match="has no store of the changelog many-sessions-changelog"):
        refuse_start(capture, state_file(capture, "counts"), base(capture, "sessions"))
    with pytest.raises(Refused, match="their store counts had lost every record of partition 1"):
        refuse_start(capture, state_file(capture, "lengths"), base(capture, emptied=(1,)))
    refuse_start(capture, state_file(capture, "counts"), base(capture, emptied=(1,)))  # then its class says so


def test_a_store_that_is_its_own_topic(capture):
    parts = tuple(
        replace(
            part, changelogs=tuple(replace(topic, is_source_topic=topic.name == "many-sessions-changelog") for topic in part.changelogs)
        )
        for part in capture.subtopologies
    )
    with pytest.raises(Refused, match="their store sessions is restored from its topic"):
        refuse_start(replace(capture, subtopologies=parts), state_file(capture, "counts"), base(capture))
