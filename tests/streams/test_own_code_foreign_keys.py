"""`kops state rebuild --app`: foreign-key joins whose results are joined by foreign keys again, or of a table with itself."""

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.own_apps import FIRST_MS, App, records
from support.own_oracles import LOST, lose_and_rebuild
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

INPUTS = {"orders": 90, "customers": 60, "regions": 40, "asked": 50}
VALUES = ("with-customers", "with-regions", "with-both")
"""Joined tables: their values are certain, their timestamps are not."""
LEFT = ("with-regions", "with-both", "twice")
"""Tables that a left join fills, or joins again: in some releases an answer for an earlier foreign key may come last (KAFKA-18713)."""


EXACT, VALUES_ONLY, DOUBTFUL = (True, True), (True, False), (False, False)
"""Whether kops claims that all keys of a store are right, and that their timestamps are too."""


def promised(found, *names):
    """Return what kops claims of stores; of one that is in doubt, nothing of timestamps."""
    claims = {name: found.claims[name] for name in names}
    return {name: (claim.is_whole, claim.is_whole and claim.is_exact) for name, claim in claims.items()}


def expected(version, *names):
    """Return what kops claims of joined tables."""
    return {name: DOUBTFUL if version == "4.0.0" and name in LEFT else VALUES_ONLY for name in names}


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.long
@pytest.mark.parametrize("version", [KAFKA_VERSION, "4.1.1", "4.0.0", "3.9.1", "3.6.2", "3.3.2", "2.8.2"])
def test_foreign_key_joins_in_a_row(cluster, prefix, run_kops, tmp_path, version):
    made = App(cluster, "rows", prefix, tmp_path / "app", version, main="InARow", inputs=list(INPUTS))
    cluster.create_all({made.topic(name): 2 for name in INPUTS})
    for seed, (name, count) in enumerate(INPUTS.items()):
        if name == "asked":
            made.run()  # what is asked finds the joined table, which in no order of the program's tasks is there so early
        deleted = [Record(b"key-%d" % at, None, FIRST_MS + 100_000 + seed) for at in (1, 2)] if name in ("orders", "customers") else []
        cluster.produce(made.topic(name), [*records(count, seed=seed, keys=10), *deleted])
    made.run()
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
    found = lose_and_rebuild(cluster, run_kops, capture, [LOST])
    print(version, found)
    assert not found.wrong, "\n".join(found.wrong)
    assert promised(found, *VALUES) == expected(version, *VALUES)
    assert {*promised(found, "orders-store", "customers-store", "regions-store").values()} == {EXACT}
    assert {*promised(found, "changes", "answers").values()} == {DOUBTFUL}


@pytest.mark.long
@pytest.mark.parametrize("version", [KAFKA_VERSION, "4.1.1", "4.0.0", "3.9.1", "3.6.2", "3.3.2", "2.8.2"])
def test_a_table_that_is_joined_with_itself(cluster, prefix, run_kops, tmp_path, version):
    made = App(cluster, "itself", prefix, tmp_path / "app", version, main="OfItself", inputs=["people"])
    cluster.create(made.topic("people"), 2)
    for seed in (1, 2):
        cluster.produce(made.topic("people"), records(60, seed=seed, keys=10))
        made.run()  # twice, so that the second half meets joins that are there already
    cluster.produce(made.topic("people"), [Record(b"key-%d" % at, None, FIRST_MS + 100_000) for at in (1, 2)])
    made.run()
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
    found = lose_and_rebuild(cluster, run_kops, capture, [LOST])
    print(version, found)
    assert not found.wrong, "\n".join(found.wrong)
    assert promised(found, "managed", "twice") == expected(version, "managed", "twice")
    assert promised(found, "people-store", "teams") == {"people-store": EXACT, "teams": DOUBTFUL}
