"""What is in doubt about windows, late records and keys, and what settings of a changelog contradict."""

from pathlib import Path

import pytest
import yaml

from kops.core.models import Bounds
from kops.core.statefile import parse_state_file
from kops.operations.state.judge.judge import is_settled
from kops.operations.state.lost_records import judge_buffer
from kops.operations.state.rules.statement import cached_join, cached_sessions, input_log, statement, unknown_changes
from kops.operations.state.rules.windows import (
    added_retention,
    counted,
    counted_windows,
    emitted_again,
    emptied,
    expires,
    expiry,
    expiry_text,
    fading,
    lateness,
    other_keys,
    rewritten_code,
    short_retention,
    window_notices,
)
from kops.operations.state.rules.witnesses import witnesses_of
from support.verdicts import DOUBT, OBSTACLE, REMARK, kinds, said, worst
from support.verdicts import NOTHING as NO_FINDING

DAY = 86_400_000
COUNT = {"aggregate": {"count": True}}
SOURCE = {"topic": "t", "key": "string", "value": "long"}
NOTHING = witnesses_of(live={}, expected=9, actions={0: {"added": 9}})
ONE_LOST = witnesses_of(live={0: 5}, expected=9, actions={1: {"added": 4}})


def parsed(body, **streams):
    return parse_state_file("f", {"application": "a", "streams": {"version": "4.3", **streams}, "stores": {"s": body}})


def store(**more):
    return parsed({"from": {"topic": "t", "key": "string", "value": "long"}, **COUNT, **more}).stores[0]


def windowed(**window):
    return store(type="window", window={"size": "10s", "grace": "0s", **window})


SESSIONS, MINUTES = store(type="session", window={"gap": "1m"}), store(type="window", window={"size": "1m"})


def test_keys_that_a_serde_may_write_otherwise():
    source = {"topic": "t", "key": "json", "value": "long"}
    (found,) = other_keys(store(**{"from": source}))
    assert kinds([found]) == [DOUBT]
    assert not list(other_keys(store()))
    assert not is_settled(found, NOTHING, None)
    assert is_settled(found, ONE_LOST, None)  # the serde is the same in all partitions


@pytest.mark.parametrize(("retention", "late", "expected"), [("1d", 1, [DOUBT]), ("1d", 0, []), ("10s", 1, [])])
def test_late_records_of_windows_that_are_still_held(retention, late, expected):
    """Whether an application that was restarted has counted one is the matter of each window: no other key settles it."""
    found = list(lateness(windowed(retention=retention), {"late": late}))
    assert kinds(found) == expected
    assert not any(is_settled(each, witnesses, None) for each in found for witnesses in (NOTHING, ONE_LOST))


def test_records_later_than_the_history_of_a_versioned_table():
    versioned = parsed({"type": "versioned", "history_retention": "5s", "from": {"topic": "t", "key": "string", "value": "long"}}).stores[0]
    assert kinds(lateness(versioned, {"late": 2})) == [DOUBT]
    assert not list(lateness(versioned, {"late": 0}))


@pytest.mark.parametrize(("kept", "expired", "expected"), [(2 * DAY, 5, [DOUBT]), (2 * DAY, 0, []), (DAY + 10_000, 5, []), (-1, 5, [])])
def test_a_changelog_that_is_kept_for_longer_than_the_file_says(kept, expired, expected):
    """The windows in doubt are none of the computed keys, so that these settle nothing."""
    found = list(short_retention(windowed(retention="10s"), {"expired": expired}, {"retention.ms": str(kept)}))
    assert kinds(found) == expected
    assert [each.subject for each in found] == ["expired windows of s"] * len(expected)


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


def test_json_that_an_expression_makes_may_have_other_bytes():
    body = {"from": {"topic": "t", "key": "string", "value": "long"}, "aggregate": {"last": "to_json(struct(value))", "as": "json"}}
    assert kinds(input_log(parsed(body).stores[0], {0: Bounds(0, 9)}, "delete", "t")) == [REMARK]


FULL, EMPTIED, NEW = Bounds(0, 9), Bounds(9, 9), Bounds(0, 0)


@pytest.mark.parametrize(
    ("buffer", "changelog", "is_lost"),
    [
        ([FULL, FULL], [FULL, FULL], False),
        ([FULL, EMPTIED], [FULL, FULL], True),
        ([FULL, NEW], [FULL, FULL], True),
        ([FULL, NEW], [FULL, NEW], False),
        ([NEW, NEW], None, True),
        (None, [FULL], True),
    ],
)
def test_a_buffer_of_which_one_partition_is_lost(buffer, changelog, is_lost):
    """Its windows are in doubt whatever the keys of the store are."""
    found = judge_buffer("b", buffer, changelog)
    assert [(each.check, each.subject) for each in found] == [("lost_buffer", "b")] * is_lost
    assert set(kinds(found)) <= {DOUBT}


def test_joins_of_cached_tables_and_what_is_grouped_from_them():
    body = yaml.safe_load((Path(__file__).parents[5] / "examples" / "regions" / "state.yaml").read_text(encoding="utf-8"))
    for cache, of_join, of_groups in ((True, [REMARK], DOUBT), (False, [], REMARK)):
        body["streams"]["cache"] = cache
        found = parse_state_file("f", body)
        stores = {one.name: one for one in found.stores}
        assert kinds(cached_join(found, stores["people"])) == of_join
        assert worst(unknown_changes(found, stores["young"], ["delete", "delete"])) == of_groups


@pytest.mark.parametrize(
    ("version", "cache", "expected"), [("2.8", True, [REMARK]), ("2.8", False, []), ("3.3", True, []), ("4.3", True, [])]
)
def test_cached_sessions_of_older_versions_have_the_times_of_flushes(version, cache, expected):
    window = {"gap": "1m", "grace": "1m", "retention": "1d"}
    found = parsed({"type": "session", "window": window, "from": SOURCE, **COUNT}, version=version, cache=cache)
    assert kinds(cached_sessions(found, found.stores[0])) == expected
    minutes = parsed(
        {"type": "window", "window": {"size": "1m", "grace": "1m", "retention": "1d"}, "from": SOURCE, **COUNT},
        version=version,
        cache=cache,
    )
    assert not list(cached_sessions(minutes, minutes.stores[0]))


@pytest.mark.parametrize(
    ("cache", "policy", "expected"), [(True, "delete", DOUBT), (False, "compact", DOUBT), (False, "delete", NO_FINDING)]
)
def test_a_reducer_over_a_table_of_which_not_every_change_is_known(cache, policy, expected):
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
    assert worst(unknown_changes(found, found.stores[1], [policy])) == expected


def test_a_partition_that_lost_all_and_gets_nothing_cannot_be_told():
    (found,) = emptied(store(), [2])
    assert (kinds([found]), found.subject) == ([DOUBT], "a-s-changelog")
    assert found.summary.startswith("partition 2 of a-s-changelog lost every record, and nothing was computed for it")
    assert not list(emptied(store(), []))


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
    found = list(expiry(store(), settings, {0: 0, 1: 7}, {0: 3, 1: 2}))
    assert kinds(found) == [DOUBT] * expected
    assert not expected or "2 keys are missing from partition 1 of a-s-changelog" in said(found)
    assert not list(expiry(store(), settings, {0: 0, 1: 7}, {0: 3}))  # nothing expired there yet


def test_what_to_do_about_a_changelog_that_expires():
    text = expiry_text(store(), {"cleanup.policy": "delete", "retention.ms": "604800000"})
    assert "after 7d (retention.ms)" in text
    assert text.endswith("kops topics alter a-s-changelog --config cleanup.policy=compact")


@pytest.mark.parametrize(
    ("noted", "kind", "reason"),
    [
        ({"late": 5, "expired": 2, "hidden": 1}, NO_FINDING, ""),
        ({"timed": 2}, REMARK, "timestamps of 2 of 9"),
        ({"trimmed": 1}, REMARK, "begins above offset 0"),
        ({"boundary": 3}, DOUBT, "3 records"),
        ({"cached": 2}, DOUBT, "2 late records"),
        ({"unaligned": 4}, DOUBT, "4 windows of a-s-changelog do not start at multiples of 1m"),
        ({"null_values": 3, "timed": 1}, DOUBT, "null value"),
        ({"trimmed": 1, "uncovered": 4}, OBSTACLE, "4 windows"),
    ],
)
def test_what_is_in_doubt_about_windows(noted, kind, reason):
    found = list(counted_windows(SESSIONS, 9, noted, cache=True))
    assert worst(found) == kind
    assert reason in said(found)


def test_without_a_cache_an_expired_session_is_gone_for_sure():
    assert not list(counted_windows(SESSIONS, 9, {"cached": 2}, cache=False))


def test_what_is_told_of_windows():
    noted = {"late": 1234, "expired": 2, "hidden": 0, "boundary": 7}
    found = list(window_notices(MINUTES, noted))
    assert [finding.summary.split(" and")[0].split(" (")[0] for finding in found] == [
        "1,234 records came after their window had closed,",
        "2 windows are past their retention",
    ]
    assert {(finding.subject, finding.check) for finding in found} == {
        ("a-s-changelog", "late_windows"),
        ("a-s-changelog", "expired_windows"),
    }
    assert counted(noted) == {"late_records": 1234, "boundary_records": 7, "expired_windows": 2}
    assert counted({}) == {"late_records": 0, "boundary_records": 0, "expired_windows": 0}


def test_what_is_sent_once_is_said():
    plain, closing = MINUTES, store(type="window", window={"size": "1m"}, emit="on-close")
    assert emitted_again(plain) == []
    assert "once more" in emitted_again(closing)[0]
    suppressed = store(type="window", window={"size": "1m"}, suppress="closed-store")
    assert suppressed.window.buffer == "a-closed-store-changelog"
    (found,) = window_notices(suppressed, {})
    assert found.subject == "a-closed-store-changelog"


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


def forgotten_times(state_file, store):
    return [each for each in statement(state_file, store, {}) if each.check == "forgotten_times"]


def test_aggregates_without_the_times_of_earlier_records_may_have_others():
    """A table has the time of the record itself, whatever its store keeps."""
    minutes = {"type": "window", "window": {"size": "1m", "grace": "1m", "retention": "1d"}}
    for body, expected in (({**COUNT}, [REMARK]), ({**minutes, **COUNT}, [REMARK]), ({}, [])):
        found = parsed({"from": SOURCE, "timestamped": False, **body}, version="4.3")
        assert kinds(forgotten_times(found, found.stores[0])) == expected
        timed = parsed({"from": SOURCE, **body}, version="4.3")
        assert not forgotten_times(timed, timed.stores[0])


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
    assert [store.name for store in found.stores if forgotten_times(found, store)] == ["joined", "behind"]


def test_code_that_was_written_again_is_named():
    reducer = store(aggregate={"reducer": "support.reducers:Members", "as": "string"})
    (found,) = rewritten_code(reducer)
    assert kinds([found]) == [REMARK]
    assert found.summary == "support.reducers:Members is the application's code written again in Python"
    assert not list(rewritten_code(store()))
