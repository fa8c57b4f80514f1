"""Every verb that asks brokers, on a cluster of each version: it works, or names the version that it needs in one line."""

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from kops.sandbox import brokers
from support.every_version import LINES, RECORD, VERSIONS, numbers, record, recorded, scene
from support.kafka import broker_jars
from support.patience import HANG_SECONDS
from support.services import own_kafkas
from support.zookeeper_kafka import OLDEST, zookeeper_kafka

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

AUTHORIZER = "authorizer.class.name"
OPEN = {"super.users": "User:ANONYMOUS", "min.insync.replicas": "1", "offsets.topic.replication.factor": "1"}
OPEN |= {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
OPEN |= {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "default.replication.factor": "1"}
"""Everybody may do everything, and what a topic of one replica holds can be written."""

DIRECTORY_IDS = ("b25lIG9mIHRoZSB0aHJlZQ", "dHdvIG9mIHRoZSB0aHJlZQ", "dHJlIG9mIHRoZSB0aHJlZQ")


@contextmanager
def three(version, jdk, tmp_path_factory, monkeypatch):
    """Run three brokers that check rights; gives their addresses, their folder, and what stops one."""
    if version == OLDEST:
        folder = tmp_path_factory.mktemp("old")
        settings = OPEN | {AUTHORIZER: "kafka.security.authorizer.AclAuthorizer"}
        with zookeeper_kafka(folder, Path(os.environ["KOPS_CACHE_DIR"]), jdk, settings, brokers=3) as servers:
            yield servers, folder, lambda _: None
        return
    made = brokers.server_settings
    checked = OPEN | {AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

    def settings(*at, **how):
        found = made(*at, **how) | checked
        if numbers(version) >= (3, 9):
            voters = found.pop("controller.quorum.voters").split(",")
            found["controller.quorum.bootstrap.servers"] = ",".join(voter.partition("@")[2] for voter in voters)
        return found

    monkeypatch.setattr(brokers, "server_settings", settings)
    if numbers(version) >= (3, 9):
        monkeypatch.setattr(brokers, "_format", format_with_voters)
    with own_kafkas(version, broker_jars(version), jdk, tmp_path_factory) as start:
        own = start(brokers=3, racks=True)
        yield own.bootstrap_servers, own.sandbox.directory, own.stop


def format_with_voters(sandbox, node, jdk, password):
    """Format a data directory so that voters can be added and removed (KIP-853)."""
    voters = ",".join(f"{each.id}@127.0.0.1:{each.controller_port}:{DIRECTORY_IDS[each.id - 1]}" for each in sandbox.nodes)
    folder = sandbox.folder(node)
    tool = ["kafka.tools.StorageTool", "format", "--config", folder / "server.properties", "--cluster-id", sandbox.cluster_id]
    command = [jdk.java, f"@{folder / 'java.args'}", *tool, "--initial-controllers", voters]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_SECONDS)


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Let the editor be a program that moves the offset 7 to 6."""
    program = tmp_path / "editor"
    edit = "path.write_text(path.read_text().replace('  0: 7 ', '  0: 6 '))"
    script = f"import pathlib, sys; path = pathlib.Path(sys.argv[1]); {edit}"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(script)} "$1"\n', "utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(program))


@pytest.mark.usefixtures("editor", "home")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_verb_works_or_names_the_version_that_it_needs(version, jdk, tmp_path_factory, monkeypatch, run_kops):
    answers, failed = {}, []
    with three(version, jdk, tmp_path_factory, monkeypatch) as (servers, folder, stop):
        monkeypatch.setenv("KOPS_BOOTSTRAP_SERVERS", servers)
        with scene(version, servers, folder, run_kops, stop) as made:
            for line in LINES:
                try:
                    answer = made.run(line)
                except AssertionError as wrong:
                    failed.append(str(wrong))
                else:
                    if answers.setdefault(line.verb, answer) != answer:
                        failed.append(f"{line.verb} needs {answer} in one line and {answers[line.verb]} in another")
    assert failed == [], "\n\n".join(failed)
    if os.environ.get(RECORD):
        record(version, answers)
    assert answers == {verb: found[version] for verb, found in recorded().items()}
