"""``kops acls grant --connect``: a worker runs connectors with exactly these rights, and does not without each of them."""

import contextlib
import os
from pathlib import Path

import pytest
import requests
from confluent_kafka.admin import AdminClient, NewTopic

from kops.core.acls.purposes import Purposes, entries
from kops.gateways.machine.jars import connect_set, jars_of
from kops.sandbox import workers
from support.connect import FILE_SINK, FILE_SOURCE, secured_worker
from support.patience import HANG_SECONDS
from support.services import WorkerProcesses
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC = "lines"
DENIED = ("authorization", "not authorized", "access denied", "could not look up partition metadata for topic")
"""The last where a worker may not create its topics: it says only at the level DEBUG why they are missing (``TopicAdmin``)."""


@pytest.fixture
def kops(secured, run_kops, home):
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[contexts.root]\n" + "".join(f"{key} = {value!r}\n" for key, value in secured.sandbox.context().items()))
    return lambda *arguments: run_kops(*arguments, "-c", "root").ok()


@pytest.fixture(scope="module")
def secured(own_brokers):
    own = own_brokers(security="acl")
    admin = AdminClient(own.client)
    admin.create_topics([NewTopic(TOPIC, 1)], operation_timeout=HANG_SECONDS)[TOPIC].result(HANG_SECONDS)
    return own


@pytest.fixture
def worker(secured, kops, jdk, tmp_path):
    """Make one worker that logs in as a user of its name and writes what sources read exactly once: ``worker("orders")``."""
    jars = jars_of(connect_set(), Path(os.environ["KOPS_CACHE_DIR"]))
    (password := tmp_path / "password").write_text("secret")
    with contextlib.ExitStack() as stack:

        def make(group):
            kops("users", "create", group, "--password-file", password, "--yes")
            found = secured_worker(secured, tmp_path, group, group, "secret", exactly_once_source_support="enabled")
            made = WorkerProcesses(found, jars, jdk)
            stack.callback(made.close)
            return made

        yield make


def granted(kops, group, without=()):
    """Give the user of a worker what kops grants, but for some."""
    grant = ["--connect", group, "--produce", TOPIC, "--consume", TOPIC, "--group", "connect-sink"]
    kops("acls", "grant", f"User:{group}", *grant, "--yes")
    purposes = Purposes(consume=(TOPIC,), group="connect-sink", produce=(TOPIC,), connect=group)
    acls = entries(f"User:{group}", purposes)
    for acl in acls:
        if (acl.type, acl.operation, acl.name) in without:
            prefixed = "prefixed" if acl.pattern == "prefixed" else "literal"
            kops(
                "acls",
                "delete",
                acl.principal,
                "--operation",
                acl.operation,
                "--resource",
                f"{acl.type}:{acl.name}",
                "--pattern",
                prefixed,
                "--yes",
            )
    return acls


def states(running, name):
    (worker,) = running.cluster.workers
    with contextlib.suppress(requests.ConnectionError):
        found = requests.get(f"http://127.0.0.1:{worker.port}/connectors/{name}/status", timeout=HANG_SECONDS).json()
        return [each["state"] for each in (found.get("connector", {"state": ""}), *found.get("tasks", []))], str(found)
    return [], ""


def create(running, name, config):
    (worker,) = running.cluster.workers
    address = f"http://127.0.0.1:{worker.port}/connectors/{name}/config"
    wait_for(f"{name} to be made", lambda: requests.put(address, json=config, timeout=HANG_SECONDS).status_code < 400)


def test_a_worker_and_its_connectors_run_with_the_rights_that_they_are_granted(worker, kops, tmp_path):
    group = "whole"
    acls = granted(kops, group)
    running = worker(group)
    running.up()
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("a\nb\n")
    source = {"connector.class": FILE_SOURCE, "file": str(read), "topic": TOPIC, "exactly.once.support": "required"}
    sink = {"connector.class": FILE_SINK, "file": str(written), "topics": TOPIC}
    create(running, "source", source)
    create(running, "sink", sink)
    wait_for("the rows", lambda: written.exists() and written.read_text() == "a\nb\n")

    # what only connectors need is missed by new ones, without a restart
    for kind, operation, name, config in (
        ("transactional-id", "WRITE", f"{group}-", source),
        ("topic", "WRITE", TOPIC, source),
        ("topic", "READ", TOPIC, sink),
        ("group", "READ", "connect-", sink),
    ):
        (acl,) = [each for each in acls if (each.type, each.operation, each.name) == (kind, operation, name)]
        again = ["--operation", operation, "--resource", f"{kind}:{name}", "--pattern", acl.pattern]
        kops("acls", "delete", acl.principal, *again, "--yes")
        new = f"without-{kind}-{operation}-{name}".lower()
        create(running, new, {**config, "file": f"{config['file']}-{new}"} if config is sink else config)
        wait_for(f"{new} to fail", lambda new=new: "FAILED" in states(running, new)[0])
        assert any(word in states(running, new)[1].lower() for word in DENIED), states(running, new)
        kops("acls", "create", acl.principal, *again, "--yes")


@pytest.mark.parametrize(
    ("kind", "operation", "name"),
    [
        ("group", "READ", "{}"),
        ("topic", "READ", "{}-"),
        ("topic", "WRITE", "{}-"),
        ("topic", "CREATE", "{}-"),
        ("transactional-id", "WRITE", "connect-cluster-{}"),
    ],
)
def test_a_worker_does_not_run_without_any_of_them(worker, kops, tmp_path, kind, operation, name):
    group = f"without-{kind}-{operation}".lower().replace("_", "-")
    granted(kops, group, {(kind, operation, name.format(group))})
    running = worker(group)
    workers.launch(running.cluster, running.cluster.workers, jars=running.jars, jdk=running.jdk)
    log = running.cluster.part(running.cluster.workers[0]).log
    wait_for("the worker to say what it may not", lambda: log.exists() and any(word in log.read_text().lower() for word in DENIED))
