"""What `kops state verify` has found different counts when the changelog is lost later: the next rebuild says so, and does not write."""

import json
import struct

import pytest

from support.programs import Program, Record
from support.streams import compacted_view
from support.streams_cases import START
from support.verified import findings

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

COUNT = Program("count", "long", value="bytes")
KEYS = 40


def test_a_difference_is_remembered_until_the_file_is_another_or_proven(cluster, prefix, tmp_path, run_kops):
    program = COUNT.named(prefix)
    changelog = program.changelog
    cluster.create(program.topic)
    cluster.create(changelog, 1, {"cleanup.policy": "compact"})
    cluster.produce(program.topic, (Record(b"key-%d" % (at % KEYS), b"x", START + at, (), 0) for at in range(2 * KEYS)))
    doubled = [Record(b"key-%d" % at, struct.pack(">q", 4), START + KEYS + at, (), 0) for at in range(KEYS)]  # as `where` or a weight would
    cluster.produce(changelog, doubled)
    cluster.commit(program.application, {(program.topic, 0): 2 * KEYS})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")

    found = run_kops("state", "verify", file, "-B", cluster.servers, "-o", "json")
    assert (found.code, found.json[0]["verdict"]) == (1, "doubtful")
    cluster.delete(changelog)
    cluster.create(changelog, 1, {"cleanup.policy": "compact"})
    rebuild = ("state", "rebuild", file, "-B", cluster.servers, "--yes")
    refused = run_kops(*rebuild)
    assert (refused.code, "found 40 of 40 keys different" in refused.err, "--accept-doubtful" in refused.err) == (5, True, True), (
        refused.err
    )
    assert cluster.read(changelog) == []
    seen = run_kops("state", "verify", file, "-B", cluster.servers, "-o", "json")
    (before,) = findings(seen.json[0])
    assert (seen.json[0]["verdict"], before["check"]) == ("doubtful", "differed_before"), seen.json
    assert "found 40 of 40 keys different" in before["summary"]

    other = {**program.state_file(), "streams": {"guarantee": "exactly_once_v2"}}
    file.write_text(json.dumps(other), encoding="utf-8")
    run_kops(*rebuild, "--dry-run").ok()
    file.write_text("# the same but for this line\n" + json.dumps(program.state_file()), encoding="utf-8")
    assert run_kops(*rebuild).code == 5
    done = run_kops(*rebuild, "--accept-doubtful").ok()
    assert "found 40 of 40 keys different" in done.err
    assert {key: entry.value for key, entry in compacted_view(cluster.read(changelog)).items()} == {
        b"key-%d" % at: struct.pack(">q", 2) for at in range(KEYS)
    }
