"""Windows in a state file."""

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import Windows, parse_state_file

SOURCE = {"topic": "t", "key": "string", "value": "long"}
COUNT = {"count": True}


def store(kind, window, aggregate=COUNT, *, version="4.3", **fields):
    body = {"type": kind, "from": SOURCE, "window": window, "aggregate": aggregate, **fields}
    return parse_state_file("state.yaml", {"application": "a", "streams": {"version": version}, "stores": {"s": body}}).stores[0]


@pytest.mark.parametrize(
    ("kind", "window", "expected"),
    [
        ("window", {"size": "1m"}, Windows("window", 60_000, 60_000, 0, 60_000, says_retention=False)),
        ("window", {"size": "1m", "advance": "10s", "grace": "5s"}, Windows("window", 60_000, 10_000, 5000, 65_000, says_retention=False)),
        ("window", {"size": "1m", "retention": "1d"}, Windows("window", 60_000, 60_000, 0, 86_400_000)),
        (
            "sliding-window",
            {"difference": "10s", "grace": "1s"},
            Windows("sliding-window", 10_000, 10_000, 1000, 21_000, says_retention=False),
        ),
        ("session", {"gap": "30s", "grace": "PT5S"}, Windows("session", 30_000, 30_000, 5000, 35_000, says_retention=False)),
    ],
)
def test_windows_have_the_defaults_of_kafka_streams(kind, window, expected):
    assert store(kind, window).window == expected
    assert store(kind, window).type == kind


@pytest.mark.parametrize(
    ("kind", "window", "field", "hint"),
    [
        ("window", {}, "window.size", "1m"),
        ("window", {"size": "1 minute"}, "window.size", "30s"),
        ("window", {"size": "0s"}, "window.size", "0ms"),
        ("window", {"size": "1m", "advance": "2m"}, "window.advance", "1m"),
        ("window", {"size": "1m", "grace": "1m", "retention": "90s"}, "window.retention", "2m"),
        ("window", {"size": "1m", "gap": "1m"}, "window.gap", "size"),
        ("sliding-window", {"difference": "1m", "retention": "1m"}, "window.retention", "2m"),
        ("sliding-window", {"size": "1m"}, "window.size", "difference"),
        ("session", {"gap": "1m", "advance": "1m"}, "window.advance", "gap"),
    ],
)
def test_what_kafka_streams_refuses_is_an_error(kind, window, field, hint):
    with pytest.raises(ConfigError) as refused:
        store(kind, window)
    assert refused.value.details["field"] == f"stores.s.{field}"
    assert hint in (refused.value.hint or "")


def test_windows_need_an_aggregate_and_a_key_value_store_has_no_windows():
    with pytest.raises(ConfigError, match=r"stores\.s\.aggregate is missing"):
        store("window", {"size": "1m"}, aggregate=None)
    with pytest.raises(ConfigError, match=r"stores\.s\.window"):
        store("key-value", {"size": "1m"})


def test_windows_are_emitted_on_update_or_on_close():
    with pytest.raises(ConfigError, match=r"stores\.s\.emit"):
        store("window", {"size": "1m"}, emit="close")
