from types import SimpleNamespace

import pytest

from kops.core.statefile import parse_state_file
from kops.operations.state.stored_keys import key_rows, stored_key, suffix_length
from kops.spark.staging import stage


def test_the_applications_own_key_and_what_is_around_it():
    window = b"key" + (1000).to_bytes(8, "big") + bytes(4)
    session = b"key" + (2000).to_bytes(8, "big") + (1000).to_bytes(8, "big")
    for kind, data in (("window", window), ("sliding-window", window), ("session", session), ("key-value", b"key"), ("versioned", b"key")):
        assert stored_key(kind, data).inner == b"key"
        assert data[: len(data) - suffix_length(kind)] == b"key"
    around = stored_key("window", window, 500).around
    assert (around["window_start"], around["window_end"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:01.500Z")
    assert stored_key("session", session).around["window_end"] == "1970-01-01T00:00:02.000Z"
    assert stored_key("window", b"short").inner == b"short"


@pytest.mark.parametrize(("wanted", "found"), [(b"null", None), (None, b"null"), (b" null", b"null")])
def test_a_null_in_json_differs_from_a_key_that_is_not_there(monkeypatch, wanted, found):
    body = {"from": {"topic": "t", "key": "string", "value": "json"}, "aggregate": {"last": "value"}}
    store = parse_state_file("f", {"application": "a", "stores": {"s": body}}).stores[0]
    row = SimpleNamespace(key=b"k", partition=0, action="changed", after_value=wanted, before_value=found)
    row.after_present, row.before_present = wanted is not None, found is not None
    row.after_timestamp = row.before_timestamp = 0
    monkeypatch.setattr(stage, "differing_rows", lambda *_: [row])
    (shown,) = key_rows(SimpleNamespace(session=None, services=None), store, "", 1)
    assert shown["expected"] != shown["actual"]
