"""Copies of an example whose state is lost or damaged and rebuilt, beside a twin that never was."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from support import twins
from support.captured import built_agent
from support.examples import Copy
from support.programs import Record
from support.streams import compacted_view

LOCAL_STATES = pytest.mark.parametrize("local_state", ["wiped", pytest.param("stale", marks=pytest.mark.long)])
"""Wiped: the changelogs and the local state are lost. Stale: there are wrong records in the changelogs, and local state from before."""


def break_and_rebuild(
    broken: Copy,
    twin: Copy,
    local_state: str,
    earlier: Path,
    *,
    lose: Callable[[str], object] | None = None,
    options: Sequence[str] = (),
) -> None:
    """Break a copy, let kops rebuild it, and compare what it holds with the twin.

    :param local_state: one of ``LOCAL_STATES``
    :param earlier: the stale one, as ``twins.keep`` has kept it
    :param lose: how a changelog is lost; emptied when left out
    :param options: of the rebuild
    """
    if local_state == "wiped":
        for topic in broken.changelogs.values():
            (lose or broken.cluster.empty)(topic)
        shutil.rmtree(broken.state)
    else:
        damage(broken)
        twins.put_back(earlier, broken.state)
    rebuild(broken, options=options)
    assert_same_stores(broken, twin)


def damage(copy: Copy) -> None:
    """Write what nobody should into every changelog: a wrong value, a tombstone, and a key that the store does not have."""
    for topic in copy.changelogs.values():
        view = sorted(compacted_view(copy.cluster.read(topic)).items())
        (key, entry), (lost, other) = view[0], view[-1]
        assert key != lost, f"{topic} needs two keys"
        records = [
            Record(key, entry.value[::-1], entry.timestamp, (), entry.partition),
            Record(lost, None, other.timestamp, (), other.partition),
            Record(b"x" + key, entry.value, entry.timestamp, (), entry.partition),
        ]
        copy.cluster.produce(topic, records)


def rebuild(copy: Copy, options: Sequence[str] = ()) -> None:
    """Let kops rebuild it; a rebuild reads back what it wrote."""
    damaged = [option for store in copy.changelogs for option in ("--damaged", store)]
    copy.kops("state", "rebuild", copy.state_file, "--yes", *damaged, *options).ok()


def rebuild_by_program(copy: Copy) -> None:
    """Let kops see how the copy's own program starts, and rebuild what it lost by that program."""
    built_agent()
    capture = copy.folder / "capture.json"
    copy.run_kops("streams", "capture", "--out", capture, "--", *copy.command(copy.state)).ok()
    copy.kops("state", "rebuild", "--app", capture, "--yes", "--accept-doubtful").ok()


def assert_same_stores(copy: Copy, twin: Copy) -> None:
    """Compare what the changelogs of two copies hold, key by key."""
    for store, expected in twin.views().items():
        found = copy.view(store)
        differing = {key: (found.get(key), expected.get(key)) for key in {*found, *expected} if found.get(key) != expected.get(key)}
        assert not differing, f"{store}: {differing}"


def assert_equal(copy: Copy, twin: Copy) -> None:
    """Compare two copies in store, output and offsets."""
    assert_same_stores(copy, twin)
    assert copy.output() == twin.output()
    assert copy.committed() == twin.committed()
