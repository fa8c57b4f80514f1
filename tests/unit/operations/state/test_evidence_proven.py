"""What a comparison has proven, remembered."""

from datetime import datetime, timezone
from types import SimpleNamespace

from kops.core.models import TopicPartition
from kops.core.statefile import parse_state_file
from kops.operations.state.evidence_proven import remember, remembered


def test_a_proof_of_an_older_snapshot_does_not_replace_a_newer_one(tmp_path):
    file = tmp_path / "state.yaml"
    file.write_text("one")
    state_file = parse_state_file(
        str(file), {"application": "app", "stores": {"s": {"from": {"topic": "in", "key": "string", "value": "long"}}}}
    )
    (store,) = state_file.stores
    services = SimpleNamespace(
        directories=SimpleNamespace(state=tmp_path),
        kafka=SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id="here")),
        now=lambda: datetime(2026, 11, 20, tzinfo=timezone.utc),
    )
    offsets = {TopicPartition("in", 0): 7, TopicPartition("other", 0): 9}
    older = remember(services, state_file, store, 5, offsets, at="2026-11-01T00:00:00.000Z")
    assert (older.text, dict(older.offsets)) == ("proven on 2026-11-01 over 5 keys", {"in:0": 7})
    newer = remember(services, state_file, store, 8, offsets)
    assert newer.text == "proven on 2026-11-20 over 8 keys"
    assert remember(services, state_file, store, 5, offsets, at="2026-11-01T00:00:00.000Z") == newer
    assert remembered(services, state_file, store) == newer
    file.write_text("another")
    assert remembered(services, state_file, store) is None
