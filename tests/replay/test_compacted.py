"""A topic that the broker has really compacted: batches with gaps, batches without records, and tombstones."""

import pytest

from support.programs import Record
from support.streams_apps import wait_for, without_offsets

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START, HOUR, KEYS = 1_760_000_000_000, 3_600_000, 30


def test_what_compaction_has_left_is_sent_archived_and_restored(scene, kops, eager_cleaner, tmp_path):
    settings = {"cleanup_policy": "compact", "segment_ms": "1000", "min_cleanable_dirty_ratio": "0", "min_compaction_lag_ms": "0"}
    source, target = scene.topic("source", **settings), scene.topic("target")
    for turn in range(4):  # each begins a new segment, as its times are an hour later
        values = [None if key % 10 == turn else b"%d-" % key + b"v" * 3000 for key in range(KEYS)]
        some = [Record(b"k%d" % key, value, START + turn * HOUR + key, (("h", b"x"),), key % 2) for key, value in enumerate(values)]
        once = [Record(b"once-%d-%d" % (turn, key), b"", START + turn * HOUR, (), key % 2) for key in range(KEYS)]
        scene.cluster.produce(source, [each for key in range(KEYS) for each in (some[key], *once[key : key + (key % 5 == 0)])])
    before = sum(high for _, high in scene.cluster.ends(source).values())
    wait_for("the compaction", lambda: len(scene.cluster.read(source)) < before - KEYS)
    scene.cluster.set_config(source, cleanup_policy="delete", retention_ms="-1")  # so that nothing more is removed while it is compared
    expected = scene.cluster.read(source)
    assert len({record.offset - number for number, record in enumerate(expected)}) > 6  # gaps
    kops("replay", "run", source, "--to", target, "--yes").ok()
    assert scene.read(target) == scene.read(source)
    first = [record for record in expected if record.partition == 0]
    start, end = first[3].offset - 1, first[-3].offset + 1
    kops("replay", "run", f"{source}:0", "--to", target, "--range", f"{start}..{end}", "--yes").ok()
    again = [record for record in scene.read(target) if record.partition == 0][len(first) :]
    assert again == without_offsets(record for record in first if start <= record.offset < end)
    archived = kops("replay", "archive", source, "--to", tmp_path / "archive", "-o", "json").ok()
    assert (archived.json["records"], "compacted away" in archived.err) == (len(expected), True)
    kops("replay", "restore", tmp_path / "archive", "--to", f"{scene.prefix}-restored", "--yes").ok()
    assert scene.read(f"{scene.prefix}-restored") == scene.read(source)
