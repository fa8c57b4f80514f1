"""Transactions that hold readers back."""

import pytest

from kops.core.diagnosis.transactions import transaction_findings
from kops.core.groups.lag import OpenTransaction
from kops.core.models import TopicPartition

NOW = 10_000_000


def held(age, *, known=True, timeout=60_000, included=True):
    return OpenTransaction(
        7,
        0,
        42,
        last_timestamp=NOW - age,
        transactional_id="tx" if known else None,
        state="Ongoing" if known else None,
        started=NOW - age if known else None,
        timeout_ms=timeout if known else None,
        includes_partition=included and known,
    )


@pytest.mark.parametrize(
    ("transaction", "expected"),
    [
        (held(1_000), [("note", "open_transaction")]),  # that is how they work
        (held(60_001), [("warning", "open_transaction")]),
        (held(60_001, timeout=900_000), [("note", "open_transaction")]),
        (held(60_001, known=False), [("critical", "hanging_transaction")]),
        (held(1_000, known=False), [("note", "open_transaction")]),  # the coordinator may not have heard of it yet
        (held(60_001, included=False), [("critical", "hanging_transaction")]),
    ],
)
def test_how_bad(transaction, expected):
    findings = list(transaction_findings({TopicPartition("t", 0): transaction}, NOW))
    assert [(finding.severity.word, finding.check) for finding in findings] == expected


def test_one_finding_for_all_partitions_of_a_producer():
    places = [TopicPartition("t", number) for number in range(3)]
    (finding,) = transaction_findings(dict.fromkeys(places, held(120_000)), NOW)
    assert finding.subject == "t:0-2"
    assert finding.summary == (
        "the transaction of tx has been open for 2m, longer than its time-out, from offset 42 of t:0 on: readers of committed data wait"
        " there; it ends when its producer commits or aborts it, or another one takes over its transactional id, or by its time-out of 1m,"
        " which is over"
    )
    assert finding.facts["partitions"] == ["t:0", "t:1", "t:2"]


def test_where_it_hangs_is_told_beside_where_it_is_open():
    hanging, held_long = (
        {TopicPartition(topic, number): held(120_000, included=topic != "a") for number in (1, 0)} for topic in ("a", "b")
    )
    first, second = sorted(transaction_findings({**held_long, **hanging}, NOW), key=lambda finding: finding.severity)
    assert (first.check, first.subject, second.check, second.subject) == ("hanging_transaction", "a:0-1", "open_transaction", "b:0-1")
    assert first.summary == (
        "the transaction of tx has been open for 2m, from offset 42 of a:0 on: readers of committed data wait there; no coordinator will"
        " end it; `kops transactions abort` does"
    )
    aborts = [f"kops transactions abort a:{number} --start-offset 42" for number in range(2)]
    assert [*first.commands] == [*aborts, "kops topics offsets a"]
