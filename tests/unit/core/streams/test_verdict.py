"""How keys are counted by what is known of them, and in which word that ends."""

import pytest

from kops.core.findings import Severity
from kops.core.streams.verdict import (
    COMPUTED,
    DOUBTFUL,
    IMPOSSIBLE,
    PROVEN,
    WORDS,
    Verdict,
    counted,
    doubt,
    is_open,
    obstacle,
    remark,
)

DOUBT, BEYOND = doubt("record_order", "in which order is not known"), doubt("lost_buffer", "its buffer is empty", subject="buffer")
OBSTACLE, REMARK = obstacle("lost_records", "records are gone"), remark("other_bytes", "bytes may differ")


def verdict(*findings, contradictions=(), keys=10, proven=0, contradicted=0, unexpected=0):
    return counted(findings, contradictions, keys=keys, proven=proven, contradicted=contradicted, unexpected=unexpected)


def counts(found):
    return tuple(found.as_json()[word] for word in WORDS)


@pytest.mark.parametrize(
    ("found", "word", "numbers"),
    [
        (verdict(proven=10), PROVEN, (10, 0, 0, 0)),
        (verdict(), COMPUTED, (0, 10, 0, 0)),
        (verdict(proven=9), COMPUTED, (9, 1, 0, 0)),
        (verdict(REMARK, proven=10), PROVEN, (10, 0, 0, 0)),
        (verdict(REMARK, proven=4), COMPUTED, (4, 6, 0, 0)),
        (verdict(DOUBT, proven=4), DOUBTFUL, (4, 0, 6, 0)),
        (verdict(DOUBT, proven=10), PROVEN, (10, 0, 0, 0)),
        (verdict(OBSTACLE, proven=4), IMPOSSIBLE, (4, 0, 0, 6)),
        (verdict(OBSTACLE, DOUBT), IMPOSSIBLE, (0, 0, 0, 10)),
        (verdict(OBSTACLE, proven=10), PROVEN, (10, 0, 0, 0)),
        (verdict(BEYOND, proven=10), DOUBTFUL, (10, 0, 0, 0)),
        (verdict(BEYOND), DOUBTFUL, (0, 10, 0, 0)),
        (verdict(contradictions=[DOUBT], proven=4, contradicted=1), DOUBTFUL, (4, 0, 6, 0)),
        (verdict(contradictions=[DOUBT], proven=9, contradicted=1), DOUBTFUL, (9, 0, 1, 0)),
        (verdict(contradictions=[DOUBT], proven=10, unexpected=3), DOUBTFUL, (10, 0, 3, 0)),
        (verdict(OBSTACLE, contradictions=[DOUBT], proven=4, contradicted=1, unexpected=2), IMPOSSIBLE, (4, 0, 0, 8)),
        (verdict(OBSTACLE, contradictions=[DOUBT], proven=9, contradicted=1), IMPOSSIBLE, (9, 0, 0, 1)),
        (verdict(keys=0), COMPUTED, (0, 0, 0, 0)),
        (verdict(DOUBT, keys=0), COMPUTED, (0, 0, 0, 0)),
        (verdict(BEYOND, keys=0), DOUBTFUL, (0, 0, 0, 0)),
        (verdict(keys=0, contradictions=[DOUBT], unexpected=2), DOUBTFUL, (0, 0, 2, 0)),
        (verdict(keys=3, proven=5), PROVEN, (3, 0, 0, 0)),
    ],
    ids=[
        "all survived",
        "nothing survived",
        "one is lost",
        "a remark on proven ones",
        "a remark on lost ones",
        "lost ones in doubt",
        "a doubt that all keys refute",
        "lost ones that cannot be computed",
        "the worst counts",
        "nothing has to be computed",
        "something else is in doubt",
        "something else, and lost ones",
        "one differs, and others are lost",
        "one differs",
        "some should not be there",
        "all at once",
        "one differs that cannot be computed",
        "no keys",
        "no keys to doubt",
        "no keys, and something else",
        "only keys that should not be there",
        "never more than there are",
    ],
)
def test_keys_are_counted_by_what_is_known_of_each(found, word, numbers):
    assert (found.word, counts(found)) == (word, numbers)


def test_every_key_is_counted_once():
    for proven in range(5):
        for contradicted in range(5 - proven):
            for given in ((), (REMARK,), (DOUBT,), (OBSTACLE,), (BEYOND,)):
                found = verdict(*given, keys=4, proven=proven, contradicted=contradicted)
                assert sum(counts(found)) == 4


def test_the_same_finding_is_said_once():
    found = verdict(DOUBT, DOUBT, contradictions=[DOUBT, REMARK])
    assert found.findings == (DOUBT, REMARK)


def test_only_what_the_witnesses_contradict_leaves_it_clear_which_is_wrong():
    assert verdict(REMARK, contradictions=[DOUBT], contradicted=1).is_clear
    assert not verdict(DOUBT, contradictions=[DOUBT], contradicted=1).is_clear
    assert not verdict(BEYOND).is_clear
    assert not verdict(OBSTACLE).is_clear


def test_what_people_are_shown():
    assert verdict(DOUBT, REMARK, BEYOND, proven=10).reasons == [BEYOND], "of proven keys nothing is in doubt"
    assert verdict(DOUBT, REMARK, BEYOND, proven=9).reasons == [DOUBT, REMARK, BEYOND]
    assert verdict(DOUBT, BEYOND).beyond == [BEYOND]
    assert verdict(remark("other_bytes", "of a topic")).beyond == []


def test_the_text_names_what_there_is():
    assert verdict(keys=1_204_334, proven=1_204_331).text == "1,204,331 proven, 3 computed"
    assert verdict(DOUBT, contradictions=[DOUBT], keys=1_000, proven=1, contradicted=2, unexpected=3).text == "1 proven, 1,002 doubtful"
    assert verdict(OBSTACLE).text == "10 impossible"
    assert verdict(keys=0).text == Verdict().text == "no keys"
    assert Verdict().word == COMPUTED


def test_findings_have_a_severity_a_code_and_what_settles_them():
    found = doubt("aborted_transactions", "said", settled_by="all keys, equal", topic="in")
    assert (found.severity, obstacle("a", "b").severity, remark("a", "b").severity) == tuple(map(Severity, (1, 0, 2)))
    assert found.as_json() == {
        "severity": "warning",
        "check": "aborted_transactions",
        "subject": "",
        "summary": "said",
        "commands": [],
        "facts": {"topic": "in"},
        "follows": [],
        "settled_by": "all keys, equal",
    }
    assert "settled_by" not in DOUBT.as_json()
    assert (is_open([REMARK]), is_open([REMARK, DOUBT]), is_open([OBSTACLE]), is_open([])) == (False, True, True, False)
