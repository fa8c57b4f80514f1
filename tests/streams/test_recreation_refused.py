"""The brokers refuse to create a topic again after it was deleted: listed as unfinished, and the same command does the rest."""

import json
import struct

import pytest

from kops.core.errors import AuthorizationFailed
from kops.gateways.kafka.topics import Topics
from support.programs import Program, Record
from support.streams import compacted_view
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS, OLD, NEW = 50, 2, 3
COUNT = Program("count", "long", value="bytes")
SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": "20000", "min.cleanable.dirty.ratio": "0.9", "segment.ms": "7200000"}


@pytest.fixture
def refused(monkeypatch):
    """Let the brokers allow the trial, and refuse to create the topic that was deleted: somebody took the right away meanwhile."""

    def create(topics, new, *, validate_only=False):
        if validate_only:
            return real(topics, new, validate_only=True)
        return {topic.name: AuthorizationFailed(f"the principal lacks CREATE on topic {topic.name}") for topic in new}

    real = Topics.create
    with monkeypatch.context() as patch:
        patch.setattr(Topics, "create", create)
        yield patch


@pytest.mark.parametrize("verb", ["rebuild", "repartition"])
def test_replacement_whose_recreation_was_refused_is_finished_by_the_same_command(cluster, prefix, tmp_path, run_kops, refused, verb):
    program = COUNT.named(prefix)
    changelog, servers = program.changelog, ("-B", cluster.servers)
    cluster.create(program.topic, NEW if verb == "repartition" else OLD)
    cluster.create(changelog, OLD, SETTINGS)
    keys = [b"key-%d" % at for at in range(KEYS)]
    cluster.produce(program.topic, [Record(key, b"x", START) for key in keys])
    wrong = verb == "rebuild"
    held = [Record(key, struct.pack(">q", 7 if wrong else 1), START) for key in keys]
    cluster.produce(changelog, held)
    cluster.commit(program.application, {(program.topic, at): high for at, (_, high) in cluster.ends(program.topic).items()})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    ways = {
        "rebuild": ("--write", "replace", "--damaged", program.store, "--confirm", changelog),
        "repartition": ("--partitions", str(NEW), "--confirm", program.application),
    }
    command = ("state", verb, str(file), *ways[verb], *servers)

    failed = run_kops(*command, "-o", "json")
    assert failed.code == 6, failed
    assert f"{changelog} is deleted, and was not created again: the principal lacks CREATE" in json.dumps(failed.json), failed
    assert changelog not in cluster.topics(prefix)
    (entry,) = run_kops("journal", "list", "--unfinished", "-o", "json").ok().json
    refused.undo()
    run_kops(*command).ok()
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []
    assert cluster.config(changelog) == SETTINGS
    assert cluster.topics(changelog)[changelog] == (OLD if wrong else NEW)
    assert {key: found.value for key, found in compacted_view(cluster.read(changelog)).items()} == dict.fromkeys(keys, struct.pack(">q", 1))
    assert run_kops("journal", "finish", entry["id"], *servers, "--yes").code == 5, "nothing is left of it"
    run_kops("undo", "last", *servers, "--yes", "--confirm", program.application).ok()
    assert cluster.config(changelog) == SETTINGS
    assert cluster.topics(changelog)[changelog] == OLD
    assert sorted((record.key, record.value) for record in cluster.read(changelog)) == sorted((record.key, record.value) for record in held)
