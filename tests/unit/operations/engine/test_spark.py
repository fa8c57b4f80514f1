"""Stages: synced before anything vouches for them, and kept as long as an unfinished entry needs them."""

import os
import time
from types import SimpleNamespace

import pyarrow
import pytest

from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.engine.spark import STAGES_KEPT_DAYS, new_stage
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.spark.staging import stage_files

ROW = {
    "partition": 0,
    "key": b"k",
    "before_present": False,
    "before_value": None,
    "before_timestamp": None,
    "after_present": True,
    "after_value": b"v",
    "after_timestamp": 1,
    "action": "added",
    "timestamp": 1,
    "high": 1,
    "low": 1,
}
UNFINISHED, DONE, NOBODYS = "unfinished", "done", "nobodys"


def test_a_file_of_a_stage_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(stage_files, "sync", lambda path: synced.append((path.name, sorted(one.name for one in tmp_path.iterdir()))))
    list(stage_files.write_file(pyarrow.Table.from_pylist([ROW]).to_batches(), str(tmp_path)))
    (part, before), (folder, after) = synced
    assert (before, after) == ([part], ["part-00000.parquet"])
    assert part.startswith(".part-00000.parquet")
    assert folder == tmp_path.name


@pytest.fixture
def stages(tmp_path):
    """Three stages that are older than any is kept, and the journal that knows two of them."""
    journal, folder = Journal(tmp_path / "journal"), tmp_path / "stages"
    old = time.time() - (STAGES_KEPT_DAYS + 1) * 86_400
    for name in (UNFINISHED, DONE, NOBODYS):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (old, old))
    for name, status in ((UNFINISHED, EntryStatus.PARTIAL), (DONE, EntryStatus.DONE)):
        arguments = {"application": "app", "stores": {"totals": {"stage": "", "prior_stage": str(folder / name)}}}
        plan = Plan("state.replace", "", "cluster-1", "test", (Item("x", "replace"),), arguments=arguments)
        journal.close(journal.open(plan), status, [ItemResult("x", Status.PARTIAL)])
    return folder


def make_one(tmp_path):
    connection = SimpleNamespace(spark=SimpleNamespace(staging_directory=None))
    now = SimpleNamespace(timestamp=lambda: 0.0)
    new_stage(SimpleNamespace(connection=connection, directories=SimpleNamespace(state=tmp_path), now=lambda: now), "app")


def test_old_stages_go_but_for_those_of_unfinished_entries(stages, tmp_path):
    make_one(tmp_path)
    assert [stage.name for stage in stages.iterdir()] == [UNFINISHED]


def test_where_an_entry_cannot_be_read_none_goes(stages, tmp_path):
    (tmp_path / "journal" / "20260101T000000000-dead.json").write_text("")
    make_one(tmp_path)
    assert sorted(stage.name for stage in stages.iterdir()) == sorted([UNFINISHED, DONE, NOBODYS])
