"""Features, the quorum and versions of requests on a broker of its own; Apache's own tools are the judges."""

import re

import pytest

from support.apache_tools import ApacheTools

pytestmark = pytest.mark.broker

FEATURES = "org.apache.kafka.tools.FeatureCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


@pytest.fixture(scope="module")
def own(own_brokers):
    return own_brokers()


@pytest.fixture(scope="module")
def apache(own):
    with ApacheTools(own.bootstrap_servers) as tools:
        yield tools


@pytest.fixture
def kops(run_kops, own):
    return lambda *arguments: run_kops(*arguments, "-B", own.bootstrap_servers)


def levels(apache):
    """Return the finalized levels that Apache's tool prints."""
    return dict(re.findall(r"^Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", apache.run("describe", FEATURES), re.MULTILINE))


def test_levels_are_changed_checked_and_taken_back(kops, apache, tmp_path):
    rows = kops("cluster", "features", "list", "-o", "json").ok().json
    shown = {row["name"]: row["release"] or str(row["finalized_level"]) for row in rows}
    assert {name: shown[name] for name in levels(apache)} == levels(apache)
    change = ("cluster", "features", "downgrade", "group.version=0")
    plan = kops(*change, "--dry-run", "-o", "json").ok().json
    assert "active controller" in plan["notes"][0]
    assert levels(apache)["group.version"] == "1"
    kops(*change, "--plan-out", tmp_path / "late.json").ok()
    done = kops(*change, "--yes", "-o", "json").ok().json
    assert levels(apache)["group.version"] == "0"
    assert kops("apply", tmp_path / "late.json", "--yes").code == 5
    kops("undo", done["journal_id"], "--yes").ok()
    assert levels(apache)["group.version"] == "1"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("upgrade",), 2),
        (("upgrade", "nothing.version=1"), 2),
        (("upgrade", "group.version=one"), 2),
        (("upgrade", "group.version=1", "--release", "4.3"), 2),
        (("upgrade", "--release", "9.9"), 2),
        (("upgrade", "group.version=0"), 2),
        (("upgrade", "group.version=99"), 5),
        (("downgrade", "transaction.version=99"), 2),
        (("downgrade", "metadata.version=8"), 5),
        (("downgrade", "metadata.version=8", "--unsafe"), 5),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_changes(kops, apache, change, code):
    before = levels(apache)
    assert kops("cluster", "features", *change, "--yes", "--confirm", "metadata.version").code == code
    assert levels(apache) == before


def test_voters_are_fixed_until_kraft_version_1(kops, apache, own):
    body = kops("cluster", "quorum", "show", "-o", "json").ok().json
    (voter,) = body["voters"]
    listed = apache.run("describe", "--status", QUORUM)
    assert int(re.search(r"LeaderId:\s+(\d+)", listed)[1]) == body["leader"] == voter["id"]
    refused = kops("cluster", "quorum", "remove", voter["id"], "--dry-run")
    assert (refused.code, "kraft.version=1" in refused.err) == (5, True)
    assert kops("cluster", "quorum", "add", 7, "--endpoint", "nowhere", "--dry-run").code == 2
    upgrade = ("cluster", "features", "upgrade", "kraft.version=1")
    plan = kops(*upgrade, "--dry-run", "-o", "json").ok().json
    assert (plan["severity"], plan["warnings"][0]) == ("severe", "this cannot be undone")
    assert kops(*upgrade, "--yes").code == 5  # it has to be named
    done = kops(*upgrade, "--confirm", "kraft.version", "-o", "json").ok().json
    assert levels(apache)["kraft.version"] == "1"
    assert kops("undo", done["journal_id"], "--yes").code == 5
    alone = kops("cluster", "quorum", "remove", voter["id"], "--dry-run")
    assert (alone.code, "only voter" in alone.err) == (5, True)
    assert kops("cluster", "quorum", "add", 7, "--endpoint", "CONTROLLER://127.0.0.1:1", "--dry-run").code == 1
    known = kops("cluster", "quorum", "show", "-o", "json").ok().json
    (line,) = re.findall(r"^\d+\s+(\S+)\s+\d+.*Leader", apache.run("describe", "--replication", QUORUM), re.MULTILINE)
    assert (known["dynamic"], known["voters"][0]["directory_id"] or "AAAAAAAAAAAAAAAAAAAAAA") == (True, line)


def test_versions_of_requests_are_those_of_apaches_tool(kops, apache):
    rows = kops("cluster", "api-versions", "-o", "json").ok().json
    printed = apache.run("org.apache.kafka.tools.BrokerApiVersionsCommand")
    theirs = re.findall(r"^\s*(?:(\w+)|UNKNOWN\(\d+\))\((\d+)\): (\d+)(?: to (\d+))?", printed, re.MULTILINE)
    expected = {int(key): (int(least), int(most or least)) for _, key, least, most in theirs}
    assert expected
    assert {row["key"]: (row["min_version"], row["max_version"]) for row in rows}.items() >= expected.items()
