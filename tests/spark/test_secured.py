"""State on a secured cluster: Spark reads, and its tasks write, over TLS with SCRAM."""

import json
import subprocess

import pytest

from kops.config.java import java_settings
from kops.core.models import NewRecord
from kops.gateways.kafka import Kafka
from support.programs import Program
from support.streams import java_command

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.streams]

STATE_FILE = """\
application: {application}
streams: {{guarantee: {guarantee}}}
stores:
  {store}:
    from: {{topic: {topic}, key: string, value: long}}
    aggregate: {{sum: value, as: long}}
"""


@pytest.fixture(scope="module")
def secured(own_brokers):
    return own_brokers(security="sasl-ssl")


@pytest.fixture
def kops(secured, run_kops, home):
    """Run kops with a context for the secured cluster."""
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    lines = "".join(f"{key} = {value!r}\n" for key, value in secured.sandbox.context().items())
    config.write_text(f"[contexts.secured]\n{lines}")
    return lambda *arguments: run_kops("-c", "secured", *arguments)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_the_application_wrote_is_rebuilt_after_it_is_lost(secured, kops, unique, tmp_path, guarantee):
    program = Program("sum", "long", value="long").named(unique())
    state_file = tmp_path / "state.yaml"
    names = {"application": program.application, "store": program.store, "topic": program.topic}
    state_file.write_text(STATE_FILE.format(guarantee=guarantee, **names))
    kops("topics", "create", program.topic, program.output, "--partitions", "3", "--yes").ok()
    records = [NewRecord(b"k%d" % (at % 7), at.to_bytes(8, "big"), 1_760_000_000_000 + at) for at in range(200)]
    Kafka(secured.connection).produce(program.topic, records)
    run_the_application(secured, program, guarantee, tmp_path)
    assert kops("state", "verify", state_file, "-o", "json").ok().json[0]["keys"] == 7
    kops("topics", "delete", program.changelog, "--confirm", program.changelog).ok()
    kops("topics", "create", program.changelog, "--partitions", "3", "--compacted", "--yes").ok()
    assert kops("state", "verify", state_file).code == 1
    kops("state", "rebuild", state_file, "--yes").ok()
    kops("state", "verify", state_file).ok()


def run_the_application(secured, program, guarantee, folder):
    """Let the real application process everything, configured as kops configures Java."""
    properties, specification = folder / "client.properties", folder / "program.json"
    settings = java_settings(secured.connection, folder)
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items() if key != "bootstrap.servers"))
    specification.write_text(json.dumps(program.as_json()))
    options = ["--guarantee", guarantee, "--client-config", str(properties), "--stop-when-idle"]
    command = [*java_command("StreamsRunner"), secured.bootstrap_servers, str(specification), str(folder / "state"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
