"""What the version of kafka-streams decides in a state file."""

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import parse_state_file
from kops.operations.state.exactness import of_statement

SOURCE = {"topic": "t", "key": "string", "value": "long"}
ALL = {"grace": "5s", "retention": "1d"}
KEPT = {"cleanup.policy": "compact,delete", "retention.ms": str(86_400_000 + 65_000)}


def file(version, store, **tables):
    streams = {} if version is None else {"version": version}
    return parse_state_file("f", {"application": "a", "streams": streams, "stores": {"s": store}, **tables})


def windowed(kind, **window):
    length = {"window": "size", "sliding-window": "difference", "session": "gap"}[kind]
    return {"type": kind, "from": SOURCE, "window": {length: "1m", **window}, "aggregate": {"count": True}}


def judged(found, settings=None):
    return of_statement(found, found.stores[0], settings or {})


COMPACT = {"cleanup.policy": "compact"}


@pytest.mark.parametrize("version", ["latest", "1.1", "0.11.0", "4", "v4.3", "4.3.1.2.3.x y"])
def test_what_is_no_version_is_refused(version):
    with pytest.raises(ConfigError, match=r"streams\.version is .*not a version of kafka-streams"):
        file(version, {"from": SOURCE})


@pytest.mark.parametrize(
    ("version", "read"), [("2.8.2", (2, 8, 2)), (4.3, (4, 3)), ("3.9.1-ccs", (3, 9, 1)), ("3.6.1.redhat-00003", (3, 6, 1))]
)
def test_versions_are_read(version, read):
    assert file(version, {"from": SOURCE}).version == read


@pytest.mark.parametrize("kind", ["window", "sliding-window", "session"])
def test_windows_need_the_version_and_before_4_0_all_that_it_does_not_decide(kind):
    with pytest.raises(ConfigError, match=r"streams\.version is missing, and stores\.s has windows"):
        file(None, windowed(kind, **ALL))
    for version in ("2.8.2", "3.9"):
        for left_out in ALL:
            given = {name: value for name, value in ALL.items() if name != left_out}
            with pytest.raises(ConfigError, match=rf"stores\.s\.window\.{left_out} is missing, and kafka-streams {version}"):
                file(version, windowed(kind, **given))
        assert file(version, windowed(kind, **ALL)).stores[0].window.retention_ms == 86_400_000
    assert file("4.0", windowed(kind)).stores[0].window.grace_ms == 0


def test_a_session_closes_by_its_grace_alone_before_3_0():
    closes = {version: file(version, windowed("session", **ALL)).stores[0].window.close_ms for version in ("2.8.2", "3.0.0", "4.3")}
    assert closes == {"2.8.2": 5000, "3.0.0": 65_000, "4.3": 65_000}


@pytest.mark.parametrize(
    ("window", "settings", "grade"),
    [
        ({"grace": "5s"}, KEPT, "A"),
        ({"grace": "5s"}, {**KEPT, "retention.ms": str(2 * 86_400_000)}, "C"),
        ({"grace": "5s"}, {**KEPT, "retention.ms": "-1"}, "C"),
        ({"grace": "5s"}, {**KEPT, "cleanup.policy": "compact"}, "A"),
        (ALL, {**KEPT, "retention.ms": str(9 * 86_400_000)}, "A"),
    ],
)
def test_a_changelog_that_keeps_more_than_the_library_by_itself_contradicts_a_file_without_retention(window, settings, grade):
    found = judged(file("4.3", windowed("window", **window)), settings)
    assert found.grade == grade
    assert grade == "A" or "say window.retention" in found.reasons[0]


@pytest.mark.parametrize(
    ("store", "settings", "grade"),
    [
        (windowed("window", **ALL), {**KEPT, "retention.ms": str(86_399_999)}, "C"),
        (windowed("session", **ALL), {**KEPT, "retention.ms": str(86_400_000)}, "A"),
        (windowed("window", **ALL), {"cleanup.policy": "compact", "retention.ms": "1"}, "A"),
        (windowed("window", **ALL), {**KEPT, "retention.ms": "-1"}, "A"),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "90000000"}, "A"),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "3599999"}, "C"),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {}, "A"),
        ({"from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "0"}, "A"),
    ],
)
def test_a_changelog_that_keeps_less_than_the_store_contradicts_the_file(store, settings, grade):
    found = judged(file("4.3", store), settings)
    assert found.grade == grade
    assert grade == "A" or "or the setting was altered" in found.reasons[0]


JOINED = {"from": {"table": "left"}, "join": {"table": "right", "type": "left", "on": "left", "value": "left", "as": "string"}}
TABLES = {"tables": {name: {"from": {"topic": name, "key": "string", "value": "string"}} for name in ("left", "right")}}
GROUPED = {"from": {"table": "left"}, "key_by": "value", "aggregate": {"reducer": "m:r", "as": "string"}}


@pytest.mark.parametrize(
    ("version", "store", "grade"),
    [
        ("4.4", {"from": SOURCE}, "A"),
        ("4.5.0", {"from": SOURCE}, "B"),
        ("5.0", JOINED, "B"),
        ("2.3.1", {"from": SOURCE}, "C"),
        ("2.4", {"from": SOURCE}, "A"),
        ("2.6", {"from": SOURCE}, "B"),
        ("2.6.0", {"from": SOURCE}, "B"),
        ("2.6.2", {"from": SOURCE}, "A"),
        ("2.7.0", {"from": SOURCE, "aggregate": {"count": True}}, "A"),
        ("3.6.2", JOINED, "C"),
        (None, JOINED, "C"),
        (None, {"from": {"table": "left"}}, "B"),
        (None, {"from": SOURCE}, "B"),
        (None, {"from": SOURCE, "aggregate": {"count": True}}, "A"),
        ("3.7.0", JOINED, "C"),
        ("3.9", JOINED, "C"),
        ("3.9.1", JOINED, "A"),
        ("4.0.1", JOINED, "A"),
        (None, GROUPED, "B"),
        ("3.4.1", GROUPED, "B"),
        ("3.5.0", GROUPED, "A"),
        ("2.7.2", windowed("sliding-window", **ALL), "C"),
        ("2.8.0", windowed("sliding-window", **ALL), "A"),
    ],
)
def test_what_kops_does_not_follow_of_a_version_is_said(version, store, grade):
    found = judged(file(version, store, **TABLES))
    assert found.grade == grade
    assert bool(found.reasons) == (grade != "A")
    assert any("is untested" in reason for reason in found.reasons) == (version in ("4.5.0", "5.0"))


def test_a_versioned_store_is_not_of_an_older_version():
    with pytest.raises(ConfigError, match=r"from 3\.5 on"):
        file("3.4.0", {"type": "versioned", "history_retention": "1h", "from": SOURCE})


def test_a_reducer_of_windows_takes_no_members():
    store = windowed("window") | {"explode": "split(value, ' ')", "aggregate": {"reducer": "m:f", "as": "string"}}
    with pytest.raises(ConfigError, match="cannot be used with a reducer of windows"):
        file("4.3", store)


def test_windows_may_start_after_the_epoch_by_less_than_their_advance():
    assert file("4.3", windowed("window", alignment="59s")).stores[0].window.alignment_ms == 59_000
    for kind, window in (("window", {"alignment": "1m"}), ("session", {"alignment": "1s"})):
        with pytest.raises(ConfigError, match=r"window\.alignment"):
            file("4.3", windowed(kind, **window))
