"""Offsets of a real source moved back and its rows seen again, and of a real sink and its rows written again."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.broker

WAITS_BEFORE_IT_CHANGES = """
import sys, time
from kops.cli.frame.main import main
from kops.operations.connect import offsets_change
offsets_change._change = lambda *_, **__: (print("stopped", flush=True), time.sleep(3600))
sys.exit(main())
"""


def test_source_rereads_rows_after_offsets_move_back(kops, pipeline, until, tmp_path):
    def shown():
        return kops("offsets", "show", pipeline.source, "-o", "json").ok().json

    until("its offset to be committed", shown)
    (row,) = shown()
    end = row["offset"]["position"]
    assert (row["partition"], end) == ({"filename": str(pipeline.read)}, len(pipeline.read.read_bytes()))
    place = ("--partition", json.dumps(row["partition"]))
    back = kops("offsets", "alter", pipeline.source, *place, "--offset", '{"position": 0}', "--yes", "-o", "json").ok().json
    assert back["items"][0]["value"] == {"before": {"position": end}, "after": {"position": 0}}
    until("the rows to pass again", lambda: pipeline.output == pipeline.lines * 2)
    until("the offset to be committed", lambda: shown()[0]["offset"] == {"position": end})
    assert kops("status", pipeline.source, "-o", "json").ok().json[0]["state"] == "RUNNING"

    wrong = kops("offsets", "alter", pipeline.source, *place, "--offset", '{"wrong": 0}', "--yes")
    assert wrong.code == 1
    assert "has its previous offsets and state" in wrong.err
    assert kops("status", pipeline.source, "-o", "json").ok().json[0]["state"] == "RUNNING"
    assert shown()[0]["offset"] == {"position": end}

    kops("stop", pipeline.source, "--yes").ok()
    saved = tmp_path / "offsets.json"
    saved.write_text(kops("offsets", "show", pipeline.source, "-o", "json").ok().out)
    kops("offsets", "reset", pipeline.source, "--yes").ok()
    assert shown() == []
    assert kops("status", pipeline.source, "-o", "json").json[0]["state"] == "STOPPED"  # it was, so it stays
    kops("offsets", "alter", pipeline.source, "--from-file", saved, "--yes").ok()
    assert shown()[0]["offset"] == {"position": end}


def test_sink_rewrites_rows_after_offsets_move_back(kops, pipeline, connect_workers, until):
    def shown():
        return kops("offsets", "show", pipeline.sink, "-o", "json").ok().json

    until("its offset to be committed", lambda: [row["lag"] for row in shown()] == [0])
    (row,) = shown()
    assert (row["partition"], row["offset"]) == ({"kafka_topic": pipeline.name, "kafka_partition": 0}, {"kafka_offset": 10})
    assert f"{pipeline.name}:0" in kops("offsets", "show", pipeline.sink).out
    kops("offsets", "alter", pipeline.sink, f"{pipeline.name}:0=7", "--yes").ok()
    until("the last rows to be written again", lambda: pipeline.output == pipeline.lines + pipeline.lines[7:])
    until("its offset to be committed", lambda: [row["lag"] for row in shown()] == [0])

    kops("stop", pipeline.sink, "--yes").ok()
    kops("offsets", "reset", pipeline.sink, "--yes").ok()
    assert shown() == []
    kops.other("undo", "last", "--yes").ok()
    assert [(row["offset"], row["lag"]) for row in shown()] == [({"kafka_offset": 10}, 0)]
    for position, said in ((f"{pipeline.name}:0=99", "99"), (f"{pipeline.name}:7=0", "no partition"), ("nowhere=start", "no topic")):
        refused = kops("offsets", "alter", pipeline.sink, position, "--yes")
        assert refused.code in (2, 5)
        assert said in refused.err
    kops("resume", pipeline.sink, "--yes").ok()
    kops("offsets", "alter", pipeline.sink, f"{pipeline.name}=start", "--yes").ok()
    until("all rows to be written again", lambda: pipeline.output == pipeline.lines + pipeline.lines[7:] + pipeline.lines)

    until("its offset to be committed", lambda: [row["lag"] for row in shown()] == [0])
    change = ("connect", "offsets", "alter", pipeline.sink, f"{pipeline.name}:0=9", "--yes", "-B", connect_workers.bootstrap_servers)
    command, pipes = [sys.executable, "-c", WAITS_BEFORE_IT_CHANGES, *change], {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=dict(os.environ), text=True, **pipes) as killed:
        try:
            assert any(line == "stopped\n" for line in killed.stdout)
        finally:
            killed.kill()
    assert kops("list", pipeline.sink, "-o", "json").ok().json[0]["state"] == "STOPPED"
    kops.other("journal", "finish", "last", "--yes").ok()
    assert kops("list", pipeline.sink, "-o", "json").ok().json[0]["state"] == "RUNNING"
    until("the last row to be written once more", lambda: pipeline.output[-2:] == pipeline.lines[9:] * 2)
