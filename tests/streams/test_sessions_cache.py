"""What a cache changes about sessions: Kafka Streams may find expired ones in it, and kops says for which records it matters."""

import struct
from dataclasses import replace

import pytest

from kops.core.statefile import parse_state_file
from kops.spark.windows.sessions import Tally, sessions_of
from kops.spark.windows.steps import steps_of
from support.programs import Program, Record, Window
from support.streams import compacted_view
from support.windows_cases import Setup, case_programs, inputs

pytestmark = pytest.mark.streams

CASES, AT_ONCE = 120, 20
CACHE = (("statestore.cache.max.bytes", str(10 << 20)),)
PROGRAM = Program("concat", "string", value="string", window=Window("session", 4, grace=3))


def folded(records: list[Record]) -> tuple[dict[bytes, bytes], Tally]:
    """Return the sessions that kops makes, and what it counts."""
    store = parse_state_file("state.yaml", replace(PROGRAM, kind="max").state_file()).stores[0]
    steps = replace(steps_of(store, "binary"), add=lambda _key, value, old: value if old is None else old + value)
    steps = replace(steps, merge=lambda _key, one, two: two if one is None else one + two, encode=bytes)
    tally, before, by_key = Tally(), -1, {}
    for record in records:
        by_key.setdefault(record.key, []).append((record.timestamp, record.value, before, -1))
        before = max(before, record.timestamp)
    found = {}
    for key, taken in by_key.items():
        for end, start, value, _timestamp in sessions_of(key, taken, store.window, steps, tally):
            if value is not None and end > before - store.window.retention_ms:
                found[key + struct.pack(">qq", end, start)] = value
    return found, tally


@pytest.mark.parametrize("cached", [False, True])
def test_a_cache_changes_only_what_is_said_to_depend_on_it(oracle, cached):
    cases = inputs(Setup("cache", PROGRAM), CASES)
    programs = case_programs(Setup("cache", PROGRAM), CASES)
    changed = 0
    for start in range(0, CASES, AT_ONCE):
        chosen = slice(start, start + AT_ONCE)
        runs = oracle.several(programs[chosen], cases[chosen], config=CACHE if cached else ())
        for records, (written, _held) in zip(cases[chosen], runs, strict=True):
            mine, tally = folded(records)
            floor = max(record.timestamp for record in records) - PROGRAM.window.size - PROGRAM.window.grace
            view = compacted_view(written.changelog)
            theirs = {key: entry.value for key, entry in view.items() if struct.unpack(">q", key[-16:-8])[0] > floor}
            assert mine == theirs or (cached and tally.cached), records
            changed += mine != theirs
    assert bool(changed) == cached
