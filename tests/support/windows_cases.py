"""Inputs for windows and sessions: what hypothesis finds between their bounds, and what each of their stores is to hold."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.programs import Program, Record, Window
from support.streams import Held, Written, compacted_view

KEYS = (b"a", b"b")
MOST = 14
"""Records of one case."""


@dataclass(frozen=True)
class Setup:
    """A program whose cases are computed together.

    :param nulls: some values are null
    """

    name: str
    program: Program
    nulls: bool = False

    @property
    def window(self) -> Window:
        assert self.program.window
        return self.program.window


def setup(kind: str, form: str, window: Window, *, nulls: bool = False) -> Setup:
    """Return a setup whose values are texts, or numbers where those are aggregated."""
    value = "string" if kind == "count" else form
    return Setup(
        f"{window.type}-{kind}-{form}-{window.size}-{window.grace}-{window.alignment}",
        Program(kind, form, value=value, window=window),
        nulls,
    )


SETUPS = [
    setup("count", "long", Window("window", 10), nulls=True),
    setup("count", "long", Window("window", 10, grace=3, advance=4, retention=20), nulls=True),
    setup("sum", "double", Window("window", 7, grace=5, advance=7)),
    setup("count", "long", Window("window", 10, grace=3, advance=4, retention=20, alignment=3)),
    setup("last", "string", Window("window", 10, grace=10, advance=5), nulls=True),
    setup("first", "string", Window("window", 6, grace=20, advance=1, retention=40), nulls=True),
    setup("concat", "string", Window("window", 5, grace=4, advance=5)),
    setup("max", "double", Window("window", 1, grace=1)),
    setup("count", "long", Window("sliding-window", 10, grace=4)),
    setup("concat", "string", Window("sliding-window", 5)),
    setup("concat_or_delete", "string", Window("sliding-window", 7, grace=20, retention=60)),
    setup("sum", "int", Window("sliding-window", 3, grace=1)),
    setup("min", "double", Window("sliding-window", 10, grace=15)),
    setup("count", "long", Window("session", 5), nulls=True),
    setup("sum", "float", Window("session", 4, grace=3, retention=20)),
    setup("concat", "string", Window("session", 3, grace=20)),
    setup("last", "string", Window("session", 5, grace=10), nulls=True),
    setup("max", "string", Window("session", 1, grace=1)),
    setup("first", "string", Window("session", 6, grace=6, retention=13), nulls=True),
]


def inputs(chosen: Setup, count: int) -> list[list[Record]]:
    """Return ``count`` inputs that hypothesis makes; the same ones each time."""
    made: list[list[Record]] = []

    @settings(
        max_examples=count, phases=[Phase.generate], database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(records(chosen))
    def keep(found: list[Record]) -> None:
        made.append(found)

    keep()
    return made


def records(chosen: Setup) -> st.SearchStrategy[list[Record]]:
    """Return a strategy of records: times that go on and fall back, by a millisecond more or less than what the windows decide by."""
    window = chosen.window
    edges = {0, 1, window.size, window.grace, window.size + window.grace, 2 * window.size + window.grace, window.retention or 0}
    near = sorted({edge + off for edge in edges for off in (-1, 0, 1) if edge + off >= 0})
    step = st.tuples(
        st.sampled_from(KEYS),
        st.sampled_from([0, 1, *near]),
        st.sampled_from([0, 0, 0, *near]),
        st.integers(0, 9) if chosen.nulls else st.just(9),
    )

    def timed(start_and_steps: tuple[int, list[tuple[bytes, int, int, int]]]) -> list[Record]:
        start, steps = start_and_steps
        latest, made = start, []
        for at, (key, forward, back, null) in enumerate(steps):
            latest += forward
            headers = (("trace", b"\x00"),) if at % 3 == 0 else ()  # which no changelog of windows has
            time = max(window.alignment or 0, latest - back)
            made.append(Record(key, None if null == 0 else value(chosen, at), time, headers))
        return made

    return st.tuples(st.sampled_from([0, 0, 3, 1000]), st.lists(step, min_size=1, max_size=MOST)).map(timed)


def value(chosen: Setup, at: int) -> bytes:
    """Return the value of the record at a place: each is another one."""
    form = chosen.program.value
    if form in ("double", "float"):
        return struct.pack(">d" if form == "double" else ">f", (at * 7 % 5 - 2) * 0.1)
    if form == "int":
        return struct.pack(">i", 2**31 - 1 - at)
    if chosen.program.kind == "concat_or_delete" and at % 4 == 3:
        return b""
    return "éa😀\uffee"[at % 4].encode() + b"%d," % at


def case_programs(chosen: Setup, count: int) -> list[Program]:
    """Return the programs of cases that are run beside each other, each with its own topic and store."""
    return [replace(chosen.program, topic=f"in-{at}", store=f"store-{at}") for at in range(count)]


def held_of(chosen: Setup, key: bytes) -> Held:
    """Return the key, start and end that the bytes of a changelog key stand for."""
    if chosen.window.type == "session":
        end, start = struct.unpack(">qq", key[-16:])
        return key[:-16].decode(), start, end
    start, _sequence = struct.unpack(">qi", key[-12:])
    return key[:-12].decode(), start, start + chosen.window.size


def expected(chosen: Setup, written: Written, held: Iterable[Held]) -> dict[bytes, tuple[bytes, int]]:
    """Return what a store holds: of the changelog's view, the keys that the store still finds."""
    found = set(held)
    view = compacted_view(written.changelog, partitions=False)
    assert all(not entry.headers for entry in view.values())
    kept = {key: (entry.value, entry.timestamp) for key, entry in view.items() if held_of(chosen, key) in found}
    assert len(kept) == len(found)
    return kept
