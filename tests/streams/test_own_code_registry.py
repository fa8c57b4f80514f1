"""`--app` where the program's serdes ask a schema registry, which they reach through kops, and only to read."""

import pytest
import requests

from kops.core.errors import MissingRequirement
from kops.gateways.machine.program_connection import no_network_command
from support.captured import built_agent
from support.own_apps import App, records
from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

GOES_ON = "deserialization.exception.handler=org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"
ALONE = ("--no-network",)
NOBODY = "http://127.0.0.1:1"
EQUAL = {"latest": "proven", "counts": "proven"}


@pytest.fixture(autouse=True, scope="module")
def agent():
    built_agent()
    try:
        no_network_command(loopback=True)
    except MissingRequirement as lacking:
        pytest.skip(lacking.message)


@pytest.fixture
def app(cluster, registry, prefix, tmp_path):
    """An application that has run, whose serdes read schemas by their ids, and registered that of a changelog."""
    number = registry.register(f"{prefix}-in-value", '"string"')
    made = App(cluster, "registered", prefix, tmp_path / "app", main="Registered")
    made.settings = [f"schema.registry.url={registry.url}", "registers=true"]
    cluster.create(made.topic("in"), 2)
    given = [Record(one.key, b"\0" + number.to_bytes(4, "big") + (one.value or b""), one.timestamp) for one in records(60, keys=10)]
    cluster.produce(made.topic("in"), given)
    made.run()
    return made


@pytest.fixture
def verify(app, run_kops, tmp_path):
    """Return what compares the changelogs, which the application wrote, with what its program computes."""

    def run(*settings, more=ALONE):
        capture = tmp_path / f"capture-{len(list(tmp_path.iterdir()))}.json"
        app.settings = ["registers=true", *settings]
        run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
        return run_kops("state", "verify", "--app", capture, *more, "-o", "json", "-B", app.cluster.servers)

    return run


@pytest.fixture
def versions(registry, prefix):
    """Return all subjects of the application, with their versions."""

    def of_all():
        subjects = requests.get(f"{registry.url}/subjects", timeout=HANG_SECONDS).json()
        own = [subject for subject in subjects if subject.startswith(prefix)]
        return {subject: requests.get(f"{registry.url}/subjects/{subject}/versions", timeout=HANG_SECONDS).json() for subject in own}

    return of_all


def statuses(run):
    return {row["store"]: row["verdict"] for row in run.ok().json}


def test_a_registry_is_read_through_kops(registry, verify, versions, prefix):
    before = versions()
    assert set(before) == {f"{prefix}-in-value", f"{prefix}-latest-changelog-value"}
    alone = verify(f"schema.registry.url={registry.url}")
    assert statuses(alone) == EQUAL
    assert f"no other machine, but for reading the schema registry {registry.url.partition('/apis/')[0]} through kops" in alone.err
    assert versions() == before


def test_a_registry_is_not_changed(registry, verify, versions, prefix):
    by_setting, by_code = f"schema.registry.url={registry.url}", f"code.url={registry.url}"
    before = versions()
    assert statuses(verify(by_setting, more=())) == EQUAL
    assert statuses(verify(by_code, f"x.schema.registry.url={registry.url}")) == EQUAL
    assert versions() == before

    requests.delete(f"{registry.url}/subjects/{prefix}-latest-changelog-value", timeout=HANG_SECONDS).raise_for_status()
    before = versions()
    for more in (ALONE, ()):
        refused = verify(by_setting, more=more)
        assert refused.code == 7, refused.err
        assert f"the program would register a schema under the subject {prefix}-latest-changelog-value, which does not" in refused.err
        assert "kops schemas register" in refused.err
        assert versions() == before


def test_what_is_not_reached_is_said(registry, verify, prefix):
    for more in (ALONE, ()):
        down = verify(f"schema.registry.url={NOBODY}", more=more)
        assert down.code == 7, down.err
        assert f"no schema registry answers at {NOBODY}; the program threw " in down.err
        assert f"at {prefix}-in:" in down.err

    by_code = f"code.url={registry.url}"
    failed = verify(by_code)
    assert failed.code == 7, failed.err
    assert "the program threw java.net." in failed.err
    assert f"at {prefix}-in:" in failed.err
    assert "where the program's settings (schema.registry.url) or the context (registry_url) name it" in failed.err

    empty = verify(by_code, GOES_ON)
    assert empty.code != 0
    assert {row["verdict"] for row in empty.json} == {"doubtful"}
    assert "the library dropped 60 records, and without a network that may be since serdes could not ask a schema registry" in empty.err

    other = verify(f"apicurio.registry.url={registry.url}", by_code)
    assert other.code == 5, other.err
    assert "asks a schema registry by Apicurio's own API (apicurio.registry.url)" in other.err
