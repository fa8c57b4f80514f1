"""Reading back from brokers that hear of a change one after another."""

from kops.core.errors import NotFound, VerificationFailed
from kops.core.plan import ItemResult, Status
from kops.operations.protocol.settling import settled, together

DONE = ItemResult("t", Status.DONE)
LATE = ItemResult("t", Status.FAILED, error=VerificationFailed("not as planned").as_json())
REFUSED = ItemResult("t", Status.FAILED, error=NotFound("gone").as_json())


def looks(*answers):
    left = list(answers)
    return lambda: (left.pop(0),) if len(left) > 1 else (left[0],)


def test_a_broker_that_is_late_is_asked_again():
    assert settled(looks(LATE, LATE, DONE)) == (DONE,)


def test_once_one_broker_shows_it_the_others_are_waited_for():
    heard = []
    assert settled(looks(LATE, DONE), lambda: heard.append("by all")) == (DONE,)
    assert heard == ["by all"]


def test_what_stays_other_than_planned_is_told_in_the_end(monkeypatch):
    monkeypatch.setattr("kops.operations.protocol.settling.SETTLE_SECONDS", 0.2)
    assert settled(looks(LATE)) == (LATE,)


def test_a_refusal_is_no_reason_to_wait():
    assert settled(looks(REFUSED, DONE)) == (REFUSED,)


def test_what_was_changed_together_with_many_has_the_time_of_them_all(monkeypatch):
    monkeypatch.setattr("kops.operations.protocol.settling.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("kops.operations.protocol.settling.SETTLE_SECONDS_EACH", 1.0)
    with together(10_000):
        assert settled(looks(*[LATE] * 30, DONE)) == (DONE,)
