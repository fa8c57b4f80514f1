"""What differs around a program before it is started."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture_file import read_capture
from kops.core.streams.surroundings import FILE, Read, digest_of
from kops.operations.state.own_code.surroundings import differences_here

CAPTURED = json.loads((Path(__file__).parents[3] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


def with_reads(capture, *reads):
    return replace(capture, surroundings=replace(capture.surroundings, options=(), read=reads))


def test_files_are_looked_at(capture, tmp_path):
    names = [tmp_path / name for name in ("same", "other", "gone", "folder")]
    digests = [digest_of("many", FILE, str(name), b"1") for name in names]
    reads = [Read(FILE, str(name), digest, "App", "name") for name, digest in zip(names, digests, strict=True)]
    names[0].write_text("1")
    names[1].write_text("2")
    names[3].mkdir()
    found = [(each.code, Path(each.name).name) for each in differences_here(with_reads(capture, *reads))]
    assert found == [("file-differs", "other"), ("file-missing", "gone"), ("file-missing", "folder")]


def test_a_capture_whose_reads_were_not_seen_says_so(capture):
    found = differences_here(replace(with_reads(capture), unknown=(("surroundings.read", "no such class"),)))
    assert [each.code for each in found] == ["reads-unknown"]
