"""What the test of random applications takes for a contradiction: only what an application would find in its store."""

import struct

from support.generated_truth import Claim, contradicts, held
from support.programs import Record, Window

SESSIONS = Window("session", 5_000, 500, None, 5_500)
START = 1_700_000_000_000


def session(start, end, value, key=b"k"):
    payload = None if value is None else struct.pack(">q", value)
    return Record(key + struct.pack(">qq", START + end, START + start), payload, START + end, (), 0)


MERGED = [session(0, 0, 1), session(0, 0, None), session(0, 4_000, 2), session(20_000, 20_000, 1), session(20_000, 20_000, None)]
LIVE = session(20_000, 22_000, 2)


def test_a_session_that_damage_brought_back_counts_only_while_the_store_finds_it():
    wanted = held(SESSIONS, [*MERGED, LIVE])
    expired = [MERGED[0], MERGED[2], LIVE]  # the store drops what ended the retention before its newest session
    assert contradicts(Claim(), wanted, expired, "long") == []
    assert len(contradicts(Claim(), wanted, [MERGED[2], MERGED[3], LIVE], "long")) == 1


def test_an_expired_window_may_have_any_value_or_be_gone():
    wanted = held(SESSIONS, [*MERGED, LIVE])
    assert contradicts(Claim(), wanted, [session(0, 4_000, 7), LIVE], "long") == []
    assert contradicts(Claim(), wanted, [LIVE], "long") == []
    assert len(contradicts(Claim(), wanted, MERGED[:3], "long")) == 1
