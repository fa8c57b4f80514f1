"""Doubts that only surviving keys settle, and what settings of a changelog contradict."""

from pathlib import Path

import pytest
import yaml

from kops.core.models import Bounds
from kops.core.statefile import parse_state_file
from kops.operations.state.evidence import proof_of
from kops.operations.state.evidence_doubts import (
    added_retention,
    counted,
    doubts,
    emitted_again,
    expires,
    expiry_text,
    fading,
    of_emptied,
    of_expiry,
    of_retention,
    of_windows,
    window_warnings,
)
from kops.operations.state.exactness import Exactness, of_cached_join, of_cached_sessions, of_changes, of_input, of_untimed_stores
from kops.operations.state.lost_records import judge_buffer

DAY = 86_400_000
COUNT = {"aggregate": {"count": True}}
SOURCE = {"topic": "t", "key": "string", "value": "long"}
NOTHING = proof_of(live={}, expected=9, actions={0: {"added": 9}})
ONE_LOST = proof_of(live={0: 5}, expected=9, actions={1: {"added": 4}})
ALL = proof_of(live={0: 5, 1: 4}, expected=9, actions={})


def parsed(body, **streams):
    return parse_state_file("f", {"application": "a", "streams": {"version": "4.3", **streams}, "stores": {"s": body}})


def store(**more):
    return parsed({"from": {"topic": "t", "key": "string", "value": "long"}, **COUNT, **more}).stores[0]


def windowed(**window):
    return store(type="window", window={"size": "10s", "grace": "0s", **window})


SESSIONS, MINUTES = store(type="session", window={"gap": "1m"}), store(type="window", window={"size": "1m"})


def grades(found):
    return [one.grade for one in found]


def test_keys_that_a_serde_may_write_otherwise():
    source = {"topic": "t", "key": "json", "value": "long"}
    assert grades(doubts(store(**{"from": source}), {}, NOTHING)) == ["C"]
    assert doubts(store(), {}, NOTHING) == []
    assert doubts(store(**{"from": source}), {}, ONE_LOST) == []  # the serde is the same in all partitions


@pytest.mark.parametrize(("retention", "late", "expected"), [("1d", 1, ["C"]), ("1d", 0, []), ("10s", 1, [])])
def test_late_records_of_windows_that_are_still_held(retention, late, expected):
    assert grades(doubts(windowed(retention=retention), {"late": late}, NOTHING)) == expected
    assert grades(doubts(windowed(retention=retention), {"late": late}, ONE_LOST)) == expected  # what happened in it is not
    assert doubts(windowed(retention=retention), {"late": late}, ALL) == []


def test_records_later_than_the_history_of_a_versioned_table():
    versioned = parsed({"type": "versioned", "history_retention": "5s", "from": {"topic": "t", "key": "string", "value": "long"}}).stores[0]
    assert grades(doubts(versioned, {"late": 2}, NOTHING)) == ["C"]
    assert doubts(versioned, {"late": 0}, NOTHING) == []


@pytest.mark.parametrize(("kept", "expired", "grade"), [(2 * DAY, 5, "C"), (2 * DAY, 0, "A"), (DAY + 10_000, 5, "A"), (-1, 5, "A")])
def test_a_changelog_that_is_kept_for_longer_than_the_file_says(kept, expired, grade):
    found = of_retention(windowed(retention="10s"), {"expired": expired}, {"retention.ms": str(kept)})
    assert (found.grade, found.hides) == (grade, grade == "C")


@pytest.mark.parametrize(
    ("retentions", "kept", "added"),
    [
        (["10s"], [DAY + 10_000], DAY),
        (["10s"], [5 * DAY + 10_000], DAY),
        (["10s", "20s"], [5 * DAY + 10_000, 5 * DAY + 20_000], 5 * DAY),
        (["10s", "10s"], [5 * DAY + 10_000, 5 * DAY + 10_000], DAY),
        (["10s", "20s"], [2 * DAY, 2 * DAY], DAY),
    ],
)
def test_what_an_application_adds_to_every_retention(retentions, kept, added):
    stores = [(windowed(retention=text), {"retention.ms": str(number)}) for text, number in zip(retentions, kept, strict=True)]
    assert added_retention(stores) == added


def test_json_that_an_expression_makes_is_b():
    body = {"from": {"topic": "t", "key": "string", "value": "long"}, "aggregate": {"last": "to_json(struct(value))", "as": "json"}}
    assert of_input(parsed(body).stores[0], {0: Bounds(0, 9)}, "delete", "t").grade == "B"


FULL, EMPTIED, NEW = Bounds(0, 9), Bounds(9, 9), Bounds(0, 0)


@pytest.mark.parametrize(
    ("buffer", "changelog", "grade"),
    [
        ([FULL, FULL], [FULL, FULL], "A"),
        ([FULL, EMPTIED], [FULL, FULL], "D"),
        ([FULL, NEW], [FULL, FULL], "D"),
        ([FULL, NEW], [FULL, NEW], "A"),
        ([NEW, NEW], None, "D"),
        (None, [FULL], "D"),
    ],
)
def test_a_buffer_of_which_one_partition_is_lost(buffer, changelog, grade):
    found = judge_buffer("b", buffer, changelog)
    assert (found.grade, found.hides) == (grade, grade == "D")


def test_joins_of_cached_tables_and_what_is_grouped_from_them():
    body = yaml.safe_load((Path(__file__).parents[4] / "examples" / "regions" / "state.yaml").read_text(encoding="utf-8"))
    for cache, of_join, of_groups in ((True, "B", "C"), (False, "A", "B")):
        body["streams"]["cache"] = cache
        found = parse_state_file("f", body)
        stores = {one.name: one for one in found.stores}
        assert of_cached_join(found, stores["people"]).grade == of_join
        assert of_changes(found, stores["young"], ["delete", "delete"]).grade == of_groups


@pytest.mark.parametrize(("version", "cache", "grade"), [("2.8", True, "B"), ("2.8", False, "A"), ("3.3", True, "A"), ("4.3", True, "A")])
def test_cached_sessions_of_older_versions_have_the_times_of_flushes(version, cache, grade):
    window = {"gap": "1m", "grace": "1m", "retention": "1d"}
    found = parsed({"type": "session", "window": window, "from": SOURCE, **COUNT}, version=version, cache=cache)
    assert of_cached_sessions(found, found.stores[0]).grade == grade
    minutes = parsed(
        {"type": "window", "window": {"size": "1m", "grace": "1m", "retention": "1d"}, "from": SOURCE, **COUNT},
        version=version,
        cache=cache,
    )
    assert of_cached_sessions(minutes, minutes.stores[0]).grade == "A"


@pytest.mark.parametrize(("cache", "policy", "grade"), [(True, "delete", "C"), (False, "compact", "C"), (False, "delete", "A")])
def test_a_reducer_over_a_table_of_which_not_every_change_is_known(cache, policy, grade):
    """A bounded top-N forgets what a value that came and went has pushed out: the cache decides whether it ever came."""
    found = parse_state_file(
        "f",
        {
            "application": "app",
            "streams": {"version": "4.3", "cache": cache},
            "stores": {
                "scores": {"from": {"topic": "scores", "key": "string", "value": "long"}},
                "best": {
                    "from": {"table": "scores"},
                    "key_by": "'all'",
                    "key_as": "string",
                    "aggregate": {"reducer": "support.reducers:Members", "as": "string"},
                },
            },
        },
    )
    judged = of_changes(found, found.stores[1], [policy])
    assert judged.grade == grade
    assert bool(judged.reasons) == (grade == "C")


def test_a_partition_that_lost_all_and_gets_nothing_cannot_be_told():
    found = of_emptied(store(), [2])
    assert (found.grade, found.hides) == ("A", True)
    assert found.reasons[0].startswith("partition 2 of a-s-changelog lost every record, and nothing was computed for it")
    assert of_emptied(store(), []) == Exactness("A")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "compact"}, False),
        ({"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "1048576"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}, False),
    ],
)
def test_keys_that_expire_from_a_changelog(settings, expected):
    assert expires(store(), settings) == expected
    assert not expires(windowed(retention="1d"), settings)
    judged = of_expiry(store(), settings, {0: 0, 1: 7}, {0: 3, 1: 2})
    assert judged.grade == ("C" if expected else "A")
    assert not expected or "2 keys are missing from partition 1 of a-s-changelog" in judged.reasons[0]
    assert of_expiry(store(), settings, {0: 0, 1: 7}, {0: 3}) == Exactness("A")  # nothing expired there yet


def test_what_to_do_about_a_changelog_that_expires():
    text = expiry_text(store(), {"cleanup.policy": "delete", "retention.ms": "604800000"})
    assert "after 7d (retention.ms)" in text
    assert text.endswith("kops topics alter a-s-changelog --config cleanup.policy=compact")


@pytest.mark.parametrize(
    ("noted", "grade", "reason"),
    [
        ({"late": 5, "expired": 2, "hidden": 1}, "A", ""),
        ({"timed": 2}, "B", "timestamps of 2 of 9"),
        ({"trimmed": 1}, "B", "begins above offset 0"),
        ({"boundary": 3}, "C", "3 records"),
        ({"cached": 2}, "C", "2 late records"),
        ({"unaligned": 4}, "C", "4 windows of a-s-changelog do not start at multiples of 1m"),
        ({"null_values": 3, "timed": 1}, "C", "null value"),
        ({"trimmed": 1, "uncovered": 4}, "D", "4 windows"),
    ],
)
def test_how_exact_windows_are(noted, grade, reason):
    found = of_windows(SESSIONS, 9, noted, cache=True)
    assert found.grade == grade
    assert reason in "; ".join(found.reasons)


def test_without_a_cache_an_expired_session_is_gone_for_sure():
    assert of_windows(SESSIONS, 9, {"cached": 2}, cache=False).grade == "A"


def test_what_is_told_of_windows():
    noted = {"late": 1234, "expired": 2, "hidden": 0, "boundary": 7}
    said = window_warnings(MINUTES, noted)
    assert [sentence.split(" and")[0].split(" (")[0] for sentence in said] == [
        "s: 1,234 records came after their window had closed,",
        "s: 2 windows have ended longer ago than the retention",
    ]
    assert counted(noted) == {"late_records": 1234, "boundary_records": 7, "expired_windows": 2}
    assert counted({}) == {"late_records": 0, "boundary_records": 0, "expired_windows": 0}


def test_what_is_sent_once_is_said():
    plain, closing = MINUTES, store(type="window", window={"size": "1m"}, emit="on-close")
    assert emitted_again(plain) == []
    assert "once more" in emitted_again(closing)[0]
    suppressed = store(type="window", window={"size": "1m"}, suppress="closed-store")
    assert suppressed.window.buffer == "a-closed-store-changelog"
    assert "a-closed-store-changelog" in window_warnings(suppressed, {})[0]


@pytest.mark.parametrize(
    ("settings", "fades"),
    [
        ({"cleanup.policy": "compact,delete", "retention.ms": "1000"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "5000"}, False),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1"}, False),
        ({"cleanup.policy": "compact", "retention.ms": "1000"}, False),
        ({}, False),
    ],
)
def test_records_that_the_broker_will_delete_are_said(settings, fades):
    assert bool(fading(MINUTES, settings, earliest=5000, now_ms=10_000)) is fades


def test_aggregates_without_the_times_of_earlier_records_may_have_others():
    """A table has the time of the record itself, whatever its store keeps."""
    minutes = {"type": "window", "window": {"size": "1m", "grace": "1m", "retention": "1d"}}
    for body, grade in (({**COUNT}, "B"), ({**minutes, **COUNT}, "B"), ({}, "A")):
        found = parsed({"from": SOURCE, "timestamped": False, **body}, version="4.3")
        assert of_untimed_stores(found.stores[0]).grade == grade
        said = parsed({"from": SOURCE, **body}, version="4.3")
        assert of_untimed_stores(said.stores[0]).grade == "A"


def test_joins_of_tables_without_timestamps_may_have_others():
    """Only the join looks them up: what is filtered or kept of such a table has the times of its records."""
    users = {"from": SOURCE, "timestamped": False}
    join = {"table": "b", "value": "left", "as": "string"}
    stores = {
        "a": users,
        "b": {"from": {**SOURCE, "topic": "u"}},
        "filtered": {"from": {"table": "a"}, "where": "value > 1"},
        "joined": {"from": {"table": "a"}, "join": join},
        "behind": {"from": {"table": "joined"}, "where": "value = 'x'"},
        "sure": {"from": {"table": "b"}, "join": {**join, "table": "b"}},
    }
    found = parse_state_file("f", {"application": "app", "stores": stores})
    grades = {store.name: of_untimed_stores(store).grade for store in found.stores}
    assert grades == {"a": "A", "b": "A", "filtered": "A", "joined": "B", "behind": "B", "sure": "A"}
