"""`--app` where the program's serdes ask a schema registry: with a network, and without one, where no registry is reached."""

import pytest

from kops.core.errors import MissingRequirement
from kops.gateways.machine.program_connection import words_without_network
from support.captured import built_agent
from support.own_apps import App, records
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

GOES_ON = "deserialization.exception.handler=org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"


@pytest.fixture(autouse=True, scope="module")
def agent():
    built_agent()
    try:
        words_without_network()
    except MissingRequirement as lacking:
        pytest.skip(lacking.message)


@pytest.mark.long
def test_without_a_network_no_registry_is_reached(cluster, registry, prefix, run_kops, tmp_path):
    number = registry.register(f"{prefix}-in-value", '"string"')
    app = App(cluster, "registered", prefix, tmp_path / "app", main="Registered")
    app.settings = [f"schema.registry.url={registry.url}"]
    cluster.create(app.topic("in"), 2)
    given = [Record(one.key, b"\0" + number.to_bytes(4, "big") + (one.value or b""), one.timestamp) for one in records(60, keys=10)]
    cluster.produce(app.topic("in"), given)
    app.run()

    def verify(*settings, more=("--no-network",)):
        capture = tmp_path / f"capture-{len(list(tmp_path.iterdir()))}.json"
        app.settings = settings
        run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
        return run_kops("state", "verify", "--app", capture, *more, "-o", "json", "-B", cluster.servers)

    by_code = f"code.url={registry.url}"
    rows = {row["store"]: row for row in verify(by_code, more=()).ok().json}
    assert {name: row["status"] for name, row in rows.items()} == {"latest": "equal", "counts": "equal"}

    refused = verify(f"schema.registry.url={registry.url}")
    assert refused.code == 5, refused.err
    assert "the program's settings name a schema registry (schema.registry.url), which its serdes could not ask without a" in refused.err
    assert "leave out --no-network" in refused.err

    failed = verify(by_code)
    assert failed.code == 7, failed.err
    assert "the program threw java.net." in failed.err
    assert f"at {prefix}-in:" in failed.err
    assert "the call reached no other machine, nor a schema registry" in failed.err

    empty = verify(by_code, GOES_ON)
    assert empty.code != 0
    assert {row["exactness"][0] for row in empty.json} == {"C"}
    assert "the library dropped 60 records, and without a network that may be since serdes could not ask a schema registry" in empty.err
