"""The application with a store of each kind, of ``Kinds.java``: its topics, what they get, and what is state of its stores."""

from __future__ import annotations

from dataclasses import replace

from support.own_apps import FIRST_MS, App, records
from support.programs import Record
from support.streams import Entry

INPUTS = {
    "in": 90,
    "left": 80,
    "right": 80,
    "names": 40,
    "asked": 60,
    "orders": 60,
    "customers": 40,
    "part-1": 30,
    "part-2": 30,
    "facts": 30,
}
PARTITIONS = {name: 1 if name.startswith(("part", "names", "facts")) else 2 for name in (*INPUTS, "tagged", "out")}
UNTIMED = {"joined"}
"""The time of what a foreign-key join found is that of the question or of the table, whichever came last: no log has their order."""
SECOND = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__=0"
"""So that what finds no partner goes on at once, as in the program that kops runs, and not by wall-clock time once a second."""


def given(name: str, seed: int) -> list[Record]:
    """Return the records of a topic; they have headers, and tables have deletions."""
    found = [replace(each, headers=(("trace", b"%d" % each.timestamp),)) for each in records(INPUTS.get(name, 60), seed=seed, keys=10)]
    deleted = [Record(b"key-%d" % at, None, FIRST_MS + 100_000 + seed) for at in (1, 2)] if name in ("orders", "customers", "facts") else []
    return [*found, *deleted]


def view_of(made: App, store: str) -> dict[bytes, Entry]:
    """Return the view of a changelog, with timestamps only where these are state."""
    view = made.view(store)
    return {key: replace(entry, timestamp=0) for key, entry in view.items()} if store in {"closed-store", *UNTIMED} else view
