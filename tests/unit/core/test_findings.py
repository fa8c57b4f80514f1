"""Findings and how they are shown."""

from hypothesis import given
from hypothesis import strategies as st

from kops.cli.frame.findings_view import findings_text
from kops.core.diagnosis.causes import CAUSES, in_order
from kops.core.findings import (
    Finding,
    Severity,
    any_at_least,
    for_connection,
    names_text,
    partitions_text,
    ranges_text,
)
from kops.core.models import TopicPartition
from kops.core.selection import parse_selection
from kops.core.sizes import size_text


def test_findings_are_sorted_by_severity_and_stable():
    findings = [Finding(severity, name, name, "") for name, severity in zip("abcd", [Severity.NOTE, Severity.CRITICAL] * 2, strict=True)]
    assert [finding.check for finding in in_order(findings)] == ["b", "d", "a", "c"]


def test_a_reason_comes_before_what_follows_from_it():
    lag = Finding(Severity.WARNING, "falling_behind", "group g", "", facts={"partitions": ["t:0", "u:1"]})
    offline = Finding(Severity.CRITICAL, "offline_partitions", "t:0", "", facts={"partitions": ["t:0"], "brokers": [2]})
    thin = Finding(Severity.WARNING, "under_replicated", "t:0-1", "", facts={"partitions": ["t:0", "t:1"], "brokers": [2]})
    broker = Finding(Severity.WARNING, "broker_missing", "broker 2", "", facts={"broker": 2})
    other = Finding(Severity.WARNING, "broker_missing", "broker 3", "", facts={"broker": 3})
    found = in_order([lag, offline, thin, other, broker])
    assert [(one.subject, one.severity.word, one.follows) for one in found] == [
        ("broker 2", "critical", ()),
        ("t:0", "critical", ("broker 2",)),
        ("broker 3", "warning", ()),
        ("t:0-1", "warning", ("broker 2",)),
        ("group g", "warning", ("t:0",)),
    ]


def test_no_finding_is_its_own_reason():
    def reasons(check, seen=()):
        assert check not in seen, (*seen, check)
        for cause in CAUSES.get(check, ()):
            reasons(cause, (*seen, check))

    for check in CAUSES:
        reasons(check)


def test_commands_are_completed_for_the_cluster():
    finding = Finding(Severity.NOTE, "a", "a", "see `kops undo X`", ("kops groups list",))
    (done,) = for_connection([finding], ("-c", "my prod"))
    assert done.summary == "see `kops undo X -c 'my prod'`"
    assert done.commands == ("kops groups list -c 'my prod'",)
    assert for_connection([finding], ()) == [finding]


def test_any_at_least():
    warning = [Finding(Severity.WARNING, "a", "a", "")]
    assert [any_at_least(warning, severity) for severity in Severity] == [False, True, True]
    assert not any_at_least([], Severity.NOTE)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_text_round_trips(numbers):
    assert parse_selection(f"t:{ranges_text(sorted(numbers))}").partitions == tuple(sorted(numbers))


def test_long_lists_of_partitions_and_names_are_shortened():
    places = [TopicPartition(topic, number) for topic in "fedcba" for number in (4, 3, 1)]
    assert partitions_text(places) == "a:1,3-4, b:1,3-4, c:1,3-4, d:1,3-4 and 2 more topics"
    assert partitions_text(places[:3]) == "f:1,3-4"
    assert names_text(["a", "b"]) == "a, b"
    assert names_text(list("abcdef")) == "a, b, c, d and 2 more"


def test_sizes():
    assert [size_text(size) for size in (None, 0, 1023, 1024, 1536, 5 * 1024**4, 3 * 1024**6)] == [
        *(None, "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 TiB", "3072.0 PiB")
    ]


def test_findings_fit_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    finding = Finding(
        Severity.WARNING, "a", "a-topic-with-a-long-name", "something is wrong with it and that takes a while", ("kops look",)
    )
    text = findings_text([finding])
    assert all(len(line) <= 50 for line in text.splitlines())
    assert text.startswith("warning   a-topic-with-a-long-name: something is\n          wrong with it")
    assert text.endswith("          $ kops look\n")


def test_many_findings_of_a_kind_are_summarized(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    alike = [Finding(Severity.WARNING, "a", f"group {number}", "is behind", (f"kops look {number}",)) for number in range(12)]
    lines = findings_text([*alike, Finding(Severity.WARNING, "b", "group x", "is stuck")]).splitlines()
    assert lines[:2] == ["warning   group 0: is behind", "          $ kops look 0"]
    assert lines[10:] == [
        "warning   7 more like this: group 5, group 6, group 7, group 8 and 3 more; -o",
        "          json shows all",
        "warning   group x: is stuck",
    ]


def test_untrusted_text_in_findings_is_escaped():
    text = findings_text([Finding(Severity.NOTE, "a", "connector \x1b[2J", "failed\x07: \u202e")])
    assert "\x1b" not in text
    assert text == "note      connector \\x1b[2J: failed\\x07: \\u202e\n"
