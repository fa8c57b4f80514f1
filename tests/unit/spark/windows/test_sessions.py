import random

import pytest

from kops.core.statefile import parse_state_file
from kops.spark.windows import sessions as windows_sessions
from kops.spark.windows.sessions import Tally, sessions_of
from kops.spark.windows.steps import steps_of


@pytest.mark.parametrize("retention", ["1d", "90ms"])
def test_sessions_that_were_merged_are_told_as_they_come_and_not_twice(monkeypatch, retention):
    window = {"gap": "5ms", "grace": "30ms", "retention": retention}
    body = {"type": "session", "from": {"topic": "t", "key": "string", "value": "long"}, "window": window, "aggregate": {"count": True}}
    (made,) = parse_state_file("f", {"application": "a", "streams": {"version": "4.3"}, "stores": {"s": body}}).stores
    chance, latest, taken = random.Random("sessions"), 0, []
    for step in range(600):
        time = max(0, step * 2 - chance.choice([0, 0, 0, 9, 40]) + chance.choice([0, 0, 30]))
        taken.append((time, None, latest, -1))
        latest = max(latest, time)
    steps, floor = steps_of(made, "string"), latest - made.window.retention_ms

    def puts(**how):
        found = list(sessions_of(b"k", taken, made.window, steps, Tally(), **how))
        assert len({put[:2] for put in found}) == len(found)
        return sorted(put for put in found if put[0] > floor)

    whole = puts()
    monkeypatch.setattr(windows_sessions, "_MAX_TOMBSTONES", 3)
    assert puts(in_order=True) == whole
    assert {put[2] is None for put in whole} == {True, False}
