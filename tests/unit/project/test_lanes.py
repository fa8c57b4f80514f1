"""The lanes in which tests run: each has every file once, and what they left out is added up."""

from pathlib import Path

import run_in_lanes

TESTS = Path(run_in_lanes.__file__).parent


def test_every_lane_has_every_file_once():
    for lanes in (run_in_lanes.lanes(), run_in_lanes.lanes_of([TESTS / "unit"])):
        files = sorted(lanes[0].files)
        assert len(files) == len(set(files)) > 10
        assert all(sorted(lane.files) == files for lane in lanes)
        assert len({lane.files[0] for lane in lanes}) == len(lanes)


def test_files_that_share_what_is_dear_to_start_belong_to_one_lane():
    *others, last = run_in_lanes.lanes()
    shared = [file for file in last.files if run_in_lanes.SHARED.search((TESTS.parent / file).read_text(encoding="utf-8"))]
    assert last.files[: len(shared)] == shared
    assert {"tests/connect/test_offsets.py", "tests/broker/test_schemas.py"} <= set(shared)
    assert not set(shared) & {lane.files[0] for lane in others}


def test_every_file_is_in_one_part():
    files = run_in_lanes.lanes()[0].files
    parts = [run_in_lanes.part_of(files, f"{number}/4") for number in (1, 2, 3, 4)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert run_in_lanes.part_of(files, "1/1") == set(files)


def test_what_was_left_out_is_added_up():
    lines = ["1 test: no Docker", "2 tests: no Docker", "streams: ended before it could say what it left out", "1 test: zsh: not installed"]
    assert run_in_lanes.summed(lines) == [
        "1 test: zsh: not installed",
        "3 tests: no Docker",
        "streams: ended before it could say what it left out",
    ]
