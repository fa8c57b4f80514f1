"""What a comparison has proven, remembered."""

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from kops.core.models import TopicPartition
from kops.core.statefile import parse_state_file
from kops.operations.state.rules.past import contradiction, remember, remember_difference, remembered


def parsed(value):
    """Return a state file whose store has values of a format."""
    body = {"application": "app", "stores": {"s": {"from": {"topic": "in", "key": "string", "value": value}}}}
    return parse_state_file("state.yaml", body)


@pytest.fixture
def known(tmp_path):
    """Return the services, a state file and its store; and let the clock show a day of November."""
    state_file = parsed("long")
    (store,) = state_file.stores
    services = SimpleNamespace(
        directories=SimpleNamespace(state=tmp_path),
        kafka=SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id="here")),
        now=lambda: datetime(2026, 11, 20, tzinfo=timezone.utc),
    )
    return SimpleNamespace(services=services, state_file=state_file, store=store, of_now=(services, state_file, store))


def test_what_was_found_last_counts_whatever_the_clock_says(known):
    remember(*known.of_now, 8, {})
    known.services.now = lambda: datetime(2026, 11, 3, tzinfo=timezone.utc)
    remember_difference(*known.of_now, {1: 2, 0: 1}, 5)
    assert remembered(*known.of_now) is None
    assert contradiction(*known.of_now).text == "found 3 of 5 keys different on 2026-11-03"
    assert contradiction(*known.of_now).partitions == (0, 1)
    known.services.now = lambda: datetime(2026, 11, 2, tzinfo=timezone.utc)
    remember(*known.of_now, 8, {})
    assert (contradiction(*known.of_now), remembered(*known.of_now).at[:10]) == (None, "2026-11-02")


def test_a_comparison_with_an_older_snapshot_settles_no_contradiction(known):
    remember_difference(*known.of_now, {0: 1}, 5)
    assert remember(*known.of_now, 5, {}, at="2026-11-01T00:00:00.000Z") is None
    assert contradiction(*known.of_now).keys == 1


def test_another_state_file_is_not_contradicted(known):
    remember_difference(*known.of_now, {0: 1}, 5)
    services, _, store = known.of_now
    assert contradiction(services, parsed("string"), store) is None
    assert contradiction(services, parsed("long"), store) is not None


def test_a_proof_of_an_older_snapshot_does_not_replace_a_newer_one(known):
    services, state_file, store = known.of_now
    offsets = {TopicPartition("in", 0): 7, TopicPartition("other", 0): 9}
    older = remember(services, state_file, store, 5, offsets, at="2026-11-01T00:00:00.000Z")
    assert (older.text, dict(older.offsets)) == ("proven on 2026-11-01 over 5 keys", {"in:0": 7})
    newer = remember(services, state_file, store, 8, offsets)
    assert newer.text == "proven on 2026-11-20 over 8 keys"
    assert remember(services, state_file, store, 5, offsets, at="2026-11-01T00:00:00.000Z") == newer
    assert remembered(services, state_file, store) == newer
    assert remembered(services, parsed("string"), store) is None
