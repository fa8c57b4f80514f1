"""`kops state rebuild --app`: every program of the oracle as a real application, which loses its changelogs and gets them back by itself.

What the changelogs held before is the truth: kops may doubt, but what it is certain of must be so, key for key.
"""

from collections import Counter

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.own_apps import App, records
from support.own_oracles import ORACLES, lose_and_rebuild

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

VERSIONS = (KAFKA_VERSION, "4.1.1", "3.9.1")
OLDER = ("3.6.2", "3.3.2", "2.8.2")
ALL_SAME = ("windows",)
"""Of which all is as it was, whatever the verdict."""
CHOSEN = {
    **dict.fromkeys(("count", "concat", "by-item", "last-by-item", "to-table", "left", "right", "windowed", "sessions", "plain"), 80),
    **dict.fromkeys(("one", "other", "orders", "customers"), 60),
}
"""The topics of ``Chosen.java``, and how many records each has."""


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for version in VERSIONS for name in ORACLES],
)
def test_all_stores_come_back(cluster, prefix, run_kops, tmp_path, version, name):
    oracle = ORACLES[name](prefix)
    oracle.run(cluster, tmp_path, version)
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *oracle.command(cluster, tmp_path, version)).ok()
    found = lose_and_rebuild(cluster, run_kops, capture)
    print(version, name, dict(Counter(found.verdicts.values())), found.differing)
    assert not found.wrong, "\n".join(found.wrong)
    assert name not in ALL_SAME or not found.differing
    assert {"computed", "proven"} & {*found.verdicts.values()}


@pytest.mark.long
@pytest.mark.parametrize("version", OLDER)
def test_stores_of_a_chosen_dozen_come_back_in_older_versions(cluster, prefix, run_kops, tmp_path, version):
    made = App(cluster, "chosen", prefix, tmp_path / "app", version, main="Chosen", inputs=list(CHOSEN))
    cluster.create_all({made.topic(name): 2 for name in CHOSEN})
    cluster.produce_all({made.topic(name): records(count, seed=seed, keys=12) for seed, (name, count) in enumerate(CHOSEN.items())})
    made.run()
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
    found = lose_and_rebuild(cluster, run_kops, capture)
    print(version, found)
    assert not found.wrong, "\n".join(found.wrong)
    exact = {name for name, claim in found.claims.items() if claim.is_whole and claim.is_exact}
    assert exact >= {"count", "concat", "to-table", "plain", "windows"}
    assert ("sessions" in exact, found.claims["sessions"].is_whole) == (version >= "3", True)
