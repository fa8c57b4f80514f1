"""Copies of an example whose state is lost or damaged and rebuilt, beside a twin that never was."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from support import twins
from support.examples import Copy
from support.programs import Record
from support.streams import compacted_view


def break_and_rebuild(
    wiped: Copy, stale: Copy, twin: Copy, earlier: Path, *, lose: Callable[[str], object] | None = None, options: Sequence[str] = ()
) -> None:
    """Break two copies, let kops rebuild both, and compare what they hold with the twin.

    :param wiped: loses its changelogs and its local state
    :param stale: has wrong records in its changelogs, and local state from before
    :param earlier: that local state, as ``twins.keep`` has kept it
    :param lose: how a changelog is lost; emptied when left out
    :param options: of the rebuild
    """
    for topic in wiped.changelogs.values():
        (lose or wiped.cluster.empty)(topic)
    shutil.rmtree(wiped.state)
    damage(stale)
    twins.put_back(earlier, stale.state)
    rebuild(wiped, stale, options=options)
    for broken in (wiped, stale):
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


def rebuild(*copies: Copy, options: Sequence[str] = ()) -> None:
    """Let kops say that the state of the first is wrong, and rebuild all; a rebuild reads back what it wrote."""
    wrong = copies[0].kops("state", "verify", copies[0].state_file)
    assert wrong.code == 1, wrong
    for copy in copies:
        damaged = [option for store in copy.changelogs for option in ("--damaged", store)]
        copy.kops("state", "rebuild", copy.state_file, "--yes", *damaged, *options).ok()


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
