"""``kops acls grant --streams``: an application runs with exactly these rights, and does not without its own topics'."""

import json
import struct
import subprocess

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kops.config.jaas import format_jaas
from support.patience import HANG_SECONDS
from support.programs import KeyBy, Program
from support.streams import java_command

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.long]

PROGRAM = Program("sum", "long", value="long", key_by=KeyBy("long")).named("granted")


def test_an_application_runs_with_the_rights_that_it_is_granted(own_brokers, run_kops, home, tmp_path):
    own = own_brokers(security="acl")
    admin = AdminClient(own.client)
    for made in admin.create_topics([NewTopic(name, 2) for name in (PROGRAM.topic, PROGRAM.output)]).values():
        made.result(HANG_SECONDS)
    producer = Producer(own.client)
    for number in range(100):
        producer.produce(PROGRAM.topic, struct.pack(">q", number), b"key-%d" % (number % 7))
    assert producer.flush(HANG_SECONDS) == 0
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[contexts.root]\n" + "".join(f"{key} = {value!r}\n" for key, value in own.sandbox.context().items()))
    (password := tmp_path / "password").write_text("secret")
    run_kops("users", "create", "app", "--password-file", password, "--yes", "-c", "root").ok()
    around = ["--consume", PROGRAM.topic, "--group", PROGRAM.application, "--produce", PROGRAM.output]
    grant = ["acls", "grant", "User:app", *around, "--streams", PROGRAM.application, "--yes", "-c", "root"]
    assert "authoriz" in ran(own, tmp_path / "without").lower()
    run_kops(*grant).ok()
    granted = ran(own, tmp_path / "granted")
    assert "CAUGHT_UP" in granted, granted
    names = {name for name in admin.list_topics(timeout=HANG_SECONDS).topics if name.startswith(f"{PROGRAM.application}-")}
    assert names == {PROGRAM.changelog, PROGRAM.repartition}


def ran(own, folder):
    """Run the application as the user ``app`` until it is idle or fails; return what it printed."""
    folder.mkdir()
    secured = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": format_jaas(
            "org.apache.kafka.common.security.scram.ScramLoginModule", {"username": "app", "password": "secret"}
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(own.sandbox.ca_file),
    }
    (specification := folder / "program.json").write_text(json.dumps({**PROGRAM.as_json(), "config": secured}))
    command = [*java_command("StreamsRunner"), own.bootstrap_servers, str(specification), str(folder / "state"), "--stop-when-idle"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS * 10)
    return found.stdout + found.stderr
