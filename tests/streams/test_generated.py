"""Random applications with random histories, damaged at random: kops may refuse or doubt, but what it is certain of must be so.

The only failure is a class, a result of ``verify`` or a "can be started" that the real store contradicts: the store of an application that
ran on a broker, as its changelog held it before the damage. Each application is damaged several times, each time in another way and with
other state files, and put back in between. ``KOPS_TEST_SEED`` names another series of cases; a case that failed names its seed.
"""

import os
import uuid

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.generated import batch
from support.generated_examined import Examined, Tried
from support.generated_life import live

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

SERIES = os.environ.get("KOPS_TEST_SEED", "1")
VERSIONS = (KAFKA_VERSION, "4.1.1", "3.9.1")
SIZES, ROUNDS, CASES = (10, 8, 4), 3, 60
"""How many stores the applications of a batch have, how often they are damaged, and how many cases that makes at least."""
MANY = 34


@pytest.mark.parametrize("number", range(MANY))
def test_kops_is_certain_only_of_what_is_so(cluster, run_kops, tmp_path, monkeypatch, number):
    prefix = f"random-{uuid.uuid4().hex[:8]}"
    made = batch(f"{SERIES}-{number}", prefix, SIZES, VERSIONS)
    tried = Tried(cluster, run_kops, tmp_path, monkeypatch)
    try:
        with tried.timed("lives"):
            starts = live(cluster, made, tmp_path)
        for life in made.lives:
            Examined(tried, life, made, starts.get(life.application, {})).try_all(ROUNDS)
    finally:
        cluster.delete_all(cluster.topics(prefix))
        print(made.seed, made.version, made.ends, *map(str, made.lives), tried, sep="\n")
    assert tried.cases >= CASES
    assert not tried.wrong, "\n".join([f"{made.seed}: kafka-streams {made.version}, runs {made.ends}", *tried.wrong])
