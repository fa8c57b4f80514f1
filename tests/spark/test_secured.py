"""State on a secured cluster: Spark reads, and its tasks write, over TLS with SCRAM."""

import json
import subprocess

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kops.config.java import java_settings
from kops.core.models import NewRecord
from kops.gateways.kafka import Kafka
from support.patience import HANG_SECONDS
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_records_are_sent_again_archived_and_restored(secured, kops, unique, tmp_path):
    source, target, some, restored = names = [unique(name) for name in ("source", "target", "some", "restored")]
    kops("topics", "create", *names[:3], "--partitions", "2", "--config", "retention.ms=-1", "--yes").ok()
    producer = Producer(secured.client)
    for at in range(60):
        producer.produce(source, b"v%d" % at, b"k%d" % at, at % 2, timestamp=1_760_000_000_000 + at, headers=[("h", b"x"), ("h", None)])
    producer.flush(HANG_SECONDS)
    whole = read(secured, source, 60)
    kops("replay", "run", source, "--to", target, "--yes").ok()
    kops("replay", "run", source, "--to", some, "--where", "partition = 1", "--yes").ok()
    kops("replay", "archive", source, "--to", tmp_path / "archive").ok()
    kops("replay", "restore", tmp_path / "archive", "--to", restored, "--yes").ok()
    assert (read(secured, target, 60), read(secured, restored, 60)) == (whole, whole)
    assert read(secured, some, 30) == [record for record in whole if record[0] == 1]


def read(secured, topic, count):
    """Return ``count`` records, and check that there are no more: partition, key, value, time and headers."""
    consumer = Consumer({**secured.client, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
    messages = consumer.consume(count + 2, 30)
    consumer.close()
    records = [(m.partition(), m.offset(), m.key(), m.value(), m.timestamp(), m.headers()) for m in messages if not m.error()]
    assert len(records) == count
    return [(partition, *rest) for partition, _, *rest in sorted(records, key=lambda record: record[:2])]
