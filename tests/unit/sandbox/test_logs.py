from itertools import islice
from pathlib import Path

import pytest

from kops.sandbox import cluster, logs
from kops.sandbox.model import Node, Sandbox


@pytest.fixture
def sandbox(tmp_path):
    made = Sandbox(tmp_path, "x", "4.3.1", "id", (Node(1, 21001, 21002), Node(2, 21003, 21004)))
    for node in made.nodes:
        made.folder(node).mkdir()
    return made


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)


def test_logs_show_last_lines_of_every_broker(sandbox):
    for node in sandbox.nodes:
        append(sandbox.log_file(node), f"a{node.id}\nb{node.id}\nc{node.id}\n")
    found = [(each.part.id, each.line) for each in logs.read(cluster.parts_of(sandbox), lines=2)]
    assert found == [(1, "b1"), (1, "c1"), (2, "b2"), (2, "c2")]


def test_logs_of_broker_that_never_ran_are_empty(sandbox):
    assert list(logs.read(cluster.parts_of(sandbox), lines=5)) == []


def test_follow_handles_partial_lines_and_rotation(sandbox):
    file = sandbox.log_file(sandbox.nodes[0])
    append(file, "one\ntw")
    coming = logs.read(cluster.parts_of(sandbox)[:1], lines=10, follow=True)
    assert next(coming).line == "one"
    append(file, "o\n")
    assert next(coming).line == "two"
    append(file, "last of the old file\n")
    file.rename(file.with_suffix(".log.1"))
    append(file, "first of the new file\n")
    assert [each.line for each in islice(coming, 2)] == ["last of the old file", "first of the new file"]
