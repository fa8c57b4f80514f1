"""What the version of kafka-streams decides in a state file."""

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import parse_state_file
from kops.operations.state.rules.statement import statement
from support.verdicts import DOUBT, NOTHING, REMARK, said, worst

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
    return list(statement(found, found.stores[0], settings or {}))


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
    ("window", "settings", "kind"),
    [
        ({"grace": "5s"}, KEPT, NOTHING),
        ({"grace": "5s"}, {**KEPT, "retention.ms": str(2 * 86_400_000)}, DOUBT),
        ({"grace": "5s"}, {**KEPT, "retention.ms": "-1"}, DOUBT),
        ({"grace": "5s"}, {**KEPT, "cleanup.policy": "compact"}, NOTHING),
        (ALL, {**KEPT, "retention.ms": str(9 * 86_400_000)}, NOTHING),
    ],
)
def test_a_changelog_that_keeps_more_than_the_library_by_itself_contradicts_a_file_without_retention(window, settings, kind):
    found = judged(file("4.3", windowed("window", **window)), settings)
    assert worst(found) == kind
    assert kind == NOTHING or "say window.retention" in found[0].summary


@pytest.mark.parametrize(
    ("store", "settings", "kind"),
    [
        (windowed("window", **ALL), {**KEPT, "retention.ms": str(86_399_999)}, DOUBT),
        (windowed("session", **ALL), {**KEPT, "retention.ms": str(86_400_000)}, NOTHING),
        (windowed("window", **ALL), {"cleanup.policy": "compact", "retention.ms": "1"}, NOTHING),
        (windowed("window", **ALL), {**KEPT, "retention.ms": "-1"}, NOTHING),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "90000000"}, NOTHING),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "3599999"}, DOUBT),
        ({"type": "versioned", "history_retention": "1h", "from": SOURCE}, {}, NOTHING),
        ({"from": SOURCE}, {**COMPACT, "min.compaction.lag.ms": "0"}, NOTHING),
    ],
)
def test_a_changelog_that_keeps_less_than_the_store_contradicts_the_file(store, settings, kind):
    found = judged(file("4.3", store), settings)
    assert worst(found) == kind
    assert kind == NOTHING or "or the setting was altered" in found[0].summary


JOINED = {"from": {"table": "left"}, "join": {"table": "right", "type": "left", "on": "left", "value": "left", "as": "string"}}
TABLES = {"tables": {name: {"from": {"topic": name, "key": "string", "value": "string"}} for name in ("left", "right")}}
GROUPED = {"from": {"table": "left"}, "key_by": "value", "aggregate": {"reducer": "m:r", "as": "string"}}


@pytest.mark.parametrize(
    ("version", "store", "kind"),
    [
        ("4.4", {"from": SOURCE}, NOTHING),
        ("4.5.0", {"from": SOURCE}, REMARK),
        ("5.0", JOINED, REMARK),
        ("2.3.1", {"from": SOURCE}, DOUBT),
        ("2.4", {"from": SOURCE}, NOTHING),
        ("2.6", {"from": SOURCE}, REMARK),
        ("2.6.0", {"from": SOURCE}, REMARK),
        ("2.6.2", {"from": SOURCE}, NOTHING),
        ("2.7.0", {"from": SOURCE, "aggregate": {"count": True}}, NOTHING),
        ("3.6.2", JOINED, DOUBT),
        (None, JOINED, DOUBT),
        (None, {"from": {"table": "left"}}, REMARK),
        (None, {"from": SOURCE}, REMARK),
        (None, {"from": SOURCE, "aggregate": {"count": True}}, NOTHING),
        ("3.7.0", JOINED, DOUBT),
        ("3.9", JOINED, DOUBT),
        ("3.9.1", JOINED, NOTHING),
        ("4.0.1", JOINED, NOTHING),
        (None, GROUPED, REMARK),
        ("3.4.1", GROUPED, REMARK),
        ("3.5.0", GROUPED, NOTHING),
        ("2.7.2", windowed("sliding-window", **ALL), DOUBT),
        ("2.8.0", windowed("sliding-window", **ALL), NOTHING),
    ],
)
def test_what_kops_does_not_follow_of_a_version_is_said(version, store, kind):
    found = [each for each in judged(file(version, store, **TABLES)) if each.check != "cached_join"]
    assert worst(found) == kind
    assert ("is untested" in said(found)) == (version in ("4.5.0", "5.0"))


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
