"""Topics with a strategy each, patterns, positions in files."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.offsets.arithmetic import ShiftBy, SkipRecords, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from kops.core.selection import Selection, split_partitions
from kops.operations.offsets.files import file_offsets, file_rules
from kops.operations.offsets.rules import Rule, places_of, rule_of
from kops.operations.offsets.strategies import Choice, mixes_of, seek_of

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
NOW_MS = 1795262400000
EARLIEST, LATEST = ToEarliest(), ToLatest()


def test_a_single_strategy_is_for_every_topic_wherever_it_stands():
    both = [(("a", "b"), Choice(to_earliest=True))]
    assert mixes_of([("to_earliest", True), ("topic", "a"), ("topic", "b")]) == both
    assert mixes_of([("topic", "a"), ("topic", "b"), ("to_earliest", True)]) == both
    assert mixes_of([("to_earliest", True)]) == [((), Choice(to_earliest=True))]


def test_each_strategy_is_for_the_topics_before_it():
    steps = [("topic", "a"), ("topic", "b:0"), ("to_earliest", True), ("topic", "c"), ("to", "@-1h")]
    assert mixes_of(steps) == [(("a", "b:0"), Choice(to_earliest=True)), (("c",), Choice(to="@-1h"))]


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([], "none is given"),
        ([("topic", "a")], "none is given"),
        ([("to_earliest", True), ("topic", "a"), ("to_latest", True)], "--to-earliest has no --topic before it"),
        ([("topic", "a"), ("to_earliest", True), ("to_latest", True)], "--to-latest has no --topic before it"),
        (
            [("topic", "a"), ("to_earliest", True), ("topic", "b"), ("to_latest", True), ("topic", "c")],
            "--topic c has no strategy behind it",
        ),
    ],
)
def test_what_is_not_clear_is_refused(steps, says):
    with pytest.raises(UsageProblem, match=says):
        mixes_of(steps)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("orders-*", ("orders-*", None)),
        ("orders-*:0,3-5", ("orders-*", (0, 3, 4, 5))),
        ("(?:a|b)", ("(?:a|b)", None)),
        ("(?:a|b):1", ("(?:a|b)", (1,))),
        ("a:", ("a:", None)),
    ],
)
def test_patterns_with_partitions(text, split):
    assert split_partitions(text) == split


@given(st.from_regex(r"[a-z*?.]{1,9}", fullmatch=True), st.sets(st.integers(0, 1000), min_size=1, max_size=9))
def test_patterns_and_partitions_come_apart_again(pattern, numbers):
    assert split_partitions(f"{pattern}:{','.join(map(str, numbers))}") == (pattern, tuple(sorted(numbers)))


def test_rules():
    assert rule_of("orders:0", EARLIEST) == Rule("orders", EARLIEST, (0,))
    assert rule_of("orders-*", EARLIEST) == Rule("orders-*", EARLIEST, pattern=True)
    assert rule_of("orders", EARLIEST, regex=True) == Rule("orders", EARLIEST, pattern=True, regex=True)
    for broken in ("or ders", "orders:x", "", "orders-*:3-1"):
        with pytest.raises(UsageProblem):
            rule_of(broken, EARLIEST)
    with pytest.raises(UsageProblem, match="regular expression"):
        rule_of("a(", EARLIEST, regex=True)


COMMITTED = {"orders-eu": {0: 5, 1: 5}, "orders-us": {0: 5}, "other": {0: 1}}
EXISTING = {"orders-eu": frozenset((0, 1, 2)), "orders-us": frozenset((0,)), "new": frozenset((0,))}


def places(*rules, named=True):
    found = places_of(enumerate(rules), COMMITTED, EXISTING, named=named)
    return {
        topic: {partition: rules[number].strategy for partition, number in zip(some.partitions, some.rules, strict=True)}
        for topic, some in found.items()
    }


def test_a_pattern_matches_topics_that_the_group_has_committed():
    assert places(rule_of("*-*", EARLIEST)) == {"orders-eu": {0: EARLIEST, 1: EARLIEST, 2: EARLIEST}, "orders-us": {0: EARLIEST}}
    assert places(rule_of("n*", EARLIEST)) == {}
    assert places(rule_of("*-*:1-2", EARLIEST)) == {"orders-eu": {1: EARLIEST, 2: EARLIEST}}
    assert places(Rule(None, EARLIEST)) == {
        "orders-eu": {0: EARLIEST, 1: EARLIEST},
        "orders-us": {0: EARLIEST},
        "other": {0: EARLIEST},
    }


def test_only_a_group_that_is_named_is_moved_in_a_topic_that_it_has_not_read():
    assert places(rule_of("new", EARLIEST)) == {"new": {0: EARLIEST}}
    assert places(rule_of("new", EARLIEST), named=False) == {}


def test_two_positions_for_one_partition_are_refused():
    with pytest.raises(UsageProblem, match="orders-eu:1 is named twice"):
        places(rule_of("orders-eu:1", EARLIEST), rule_of("orders-*:0-1", LATEST))
    same = rule_of("orders-eu:1", EARLIEST)
    assert places(same, rule_of("orders-eu:0-1", EARLIEST)) == {"orders-eu": {0: EARLIEST, 1: EARLIEST}}


def test_a_topic_that_is_gone_keeps_its_commits():
    assert places(rule_of("oth*", EARLIEST)) == {"other": {0: EARLIEST}}


def test_skips():
    assert seek_of("orders:0=skip:3", NOW) == (Selection("orders", (0,)), SkipRecords(3))
    for text in ("orders:0=skip:0", "orders:0=skip:", "orders:0=skip:-1", "orders:0=skip:1.5", "orders:0=skip:٣"):
        with pytest.raises(UsageProblem, match="skips no number"):
            seek_of(text, NOW)


YAML = """
- topic: orders
  partitions: 0,3-4
  position: 12
- {group: billing, topic: orders, partitions: [1, 2], position: "@-1h"}
- {topic: payments, position: end}
- {topic: payments2, partitions: 3, position: "+1"}
- {topic: payments3, position: current}
"""
WISHES = [
    Rule("orders", ToOffset(12), (0, 3, 4)),
    Rule("orders", ToTime(NOW_MS - 3_600_000), (1, 2), group="billing"),
    Rule("payments", ToLatest()),
    Rule("payments2", ShiftBy(1), (3,)),
    Rule("payments3", ToCurrent()),
]


def test_positions_as_yaml_and_json(tmp_path):
    import json

    import yaml

    file = tmp_path / "positions.yaml"
    file.write_text(YAML)
    assert file_rules(file, NOW) == WISHES
    file = tmp_path / "positions"
    file.write_text(json.dumps(yaml.safe_load(YAML)))
    assert file_rules(file, NOW) == WISHES
    assert file_rules(file, NOW, [rule_of("pay*", EARLIEST)]) == WISHES[2:]
    assert file_offsets(file, "audit", [Selection("orders")], NOW) == {Selection("orders", (0, 3, 4)): ToOffset(12)}
    with pytest.raises(UsageProblem, match="no offsets of other"):
        file_rules(file, NOW, [rule_of("other", EARLIEST)])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {topic: a, position: x}", "entry 1 of .*'x' is not a valid position"),
        ("- {topic: a, position: end}\n- {topic: b}", "entry 2 of .* has no topic or no position"),
        ("- {topic: a, position: end, partition: 0, offsets: 1}", "unknown key offsets"),
        ("- {topic: a, partitions: x, position: end}", "entry 1"),
        ("- {topic: 'a b', position: end}", "entry 1"),
        ("- [1]", "not a list of positions"),
        ("- {topic: a, position: end", "positions.yaml, line 1: not YAML"),
        ("-\n", "not a list of positions"),
    ],
)
def test_broken_files_say_where(tmp_path, text, says):
    file = tmp_path / "positions.yaml"
    file.write_text(text)
    with pytest.raises(UsageProblem, match=says):
        file_rules(file, NOW)
