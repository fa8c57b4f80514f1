"""Random applications with random histories, rebuilt by their own programs: kops may refuse or doubt, but what it is certain of must be so.

As ``test_generated.py``, with a capture of each application in place of a state file.
"""

import os
import uuid

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.generated import batch
from support.generated_examined import ByProgram, Tried
from support.generated_life import live

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

SERIES = os.environ.get("KOPS_TEST_SEED", "1")
VERSIONS = (KAFKA_VERSION, "4.1.1", "3.9.1")
SIZES, ROUNDS, MANY = (8, 6, 3), 2, 12
OF_KEEPING, MANY_KEEPING = (6,), 110


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.parametrize("number", range(MANY))
def test_kops_is_certain_only_of_what_is_so(cluster, run_kops, tmp_path, monkeypatch, number):
    _examine(cluster, run_kops, tmp_path, monkeypatch, f"{SERIES}-by-program-{number}", SIZES)


@pytest.mark.parametrize("number", range(MANY_KEEPING))
def test_of_programs_that_keep_fields_and_read_what_is_around_them_too(cluster, run_kops, tmp_path, monkeypatch, number):
    (file := tmp_path / "kept").write_text(f"{number % 7}\n", encoding="utf-8")
    _examine(cluster, run_kops, tmp_path, monkeypatch, f"{SERIES}-keeping-{number}", OF_KEEPING, file)


def _examine(cluster, run_kops, tmp_path, monkeypatch, seed, sizes, kept=None):
    prefix = f"program-{uuid.uuid4().hex[:8]}"
    made = batch(seed, prefix, sizes, VERSIONS, kept=kept)
    tried = Tried(cluster, run_kops, tmp_path, monkeypatch)
    try:
        with tried.timed("lives"):
            starts = live(cluster, made, tmp_path)
        for life in made.lives:
            ByProgram(tried, life, made, starts.get(life.application, {})).try_all(ROUNDS)
    finally:
        cluster.delete_all(cluster.topics(prefix))
        print(made.seed, made.version, made.ends, *map(str, made.lives), tried, sep="\n")
    assert not tried.wrong, "\n".join([f"{made.seed}: kafka-streams {made.version}, runs {made.ends}", *tried.wrong])
