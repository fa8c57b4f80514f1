"""Who may do what, and how much: kops beside Apache's tools, and kcl where it is on the PATH, on the same secured broker, in one run.

    python tests/benchmarks/administration.py [--acls 10000] [--quotas 2000] [--runs 3]

Whole processes are timed, their start and login (SCRAM over TLS) included. Each pair is run in turn, and the medians are compared; what
only kops does stands alone. Where little is asked for, the start is all that counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from measure import Measured, apache_command, kops_command, measured, sandboxed

from kops.config.librdkafka import librdkafka_settings
from kops.gateways.kafka import Kafka
from kops.sandbox.model import ACL, Sandbox

PRINCIPALS = 500
AT_ONCE = 1000
TOOLS = "org.apache.kafka.tools."
AclShape = tuple[ResourceType, str, ResourcePatternType, AclOperation]
SHAPES: tuple[AclShape, ...] = (
    (ResourceType.TOPIC, "topic-{:05d}", ResourcePatternType.LITERAL, AclOperation.READ),
    (ResourceType.TOPIC, "topic-{:05d}", ResourcePatternType.LITERAL, AclOperation.WRITE),
    (ResourceType.TOPIC, "prefix-{:05d}-", ResourcePatternType.PREFIXED, AclOperation.READ),
    (ResourceType.GROUP, "group-{:05d}", ResourcePatternType.LITERAL, AclOperation.READ),
)


class Task(NamedTuple):
    """What both tools are asked to do.

    :param kops: the verb and its arguments
    :param apache: the class of Apache's tool and its arguments; empty: it cannot do this
    :param kcl: its words; empty: it cannot do this, or does less
    :param lines: how many lines kops prints at least, as a check that it did it
    """

    kops: str
    apache: str = ""
    lines: int = 0
    kcl: str = ""


def tasks(acls: int, quotas: int) -> list[Task]:
    few = "User:user-007"
    return [
        Task("acls list", "AclCommand --list", acls, kcl="acl list --type any"),
        Task("acls list -o json", "", acls, kcl="acl list --type any --format json"),
        Task("acls export", "", acls),
        Task(f"acls explain {few} READ topic:topic-00007 --super-user admin"),
        Task("acls audit"),
        Task("quotas list", "ConfigCommand --describe --entity-type users", quotas, kcl="quota describe --any user"),
        Task("quotas explain --user user-007 --client-id any"),
        Task(f"acls list {few}", f"AclCommand --list --principal {few}", acls // PRINCIPALS, kcl=f"acl list --type any --principal {few}"),
        Task("users list", "ConfigCommand --describe --entity-type users --entity-name kops", 1, kcl="user list --user kops"),
        Task("topics list", "TopicCommand --list", kcl="topic list"),
        Task("groups list", "GroupsCommand --list", kcl="group list"),
        Task("transactions list", "TransactionsCommand list", kcl="txn list"),
        Task("topics reassignments", "reassign.ReassignPartitionsCommand --list", kcl="reassign list"),
        Task(
            "brokers config 1 --all",
            "ConfigCommand --describe --entity-type brokers --entity-name 1 --all",
            100,
            kcl="config describe 1 -tb",
        ),
        Task("brokers log-dirs", "LogDirsCommand --describe", kcl="logdirs describe"),
        Task("cluster features list", "FeatureCommand describe", 1, kcl="cluster features describe"),
        Task("cluster quorum show", "MetadataQuorumCommand describe --status", 1, kcl="cluster describe-quorum"),
        Task("cluster api-versions", "BrokerApiVersionsCommand", 50, kcl="misc api-versions"),
        Task("client-metrics list", "ClientMetricsCommand --list", kcl="client-metrics list"),
    ]


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--quotas", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name:
        folder = Path(name)
        os.environ |= {"KOPS_CONFIG": str(folder / "config.toml"), "XDG_STATE_HOME": str(folder / "state")}
        with sandboxed(folder, security=ACL) as sandbox:
            fill(sandbox, options.acls, options.quotas)
            (folder / "config.toml").write_text(context_text(sandbox))
            (folder / "kcl.toml").write_text(kcl_text(sandbox))
            print(f"{options.acls:,} ACLs, {options.quotas:,} quotas; medians of {options.runs}", flush=True)
            for task in tasks(options.acls, options.quotas):
                compare(task, sandbox, folder, options.runs)
    return 0


def compare(task: Task, sandbox: Sandbox, folder: Path, runs: int) -> None:
    """Print what each tool takes for a task."""
    kops = kops_command("-q", *task.kops.split())
    main_class, *arguments = task.apache.split() or [""]
    settings = str(sandbox.directory / "client.properties")
    apache = [
        *apache_command(TOOLS + main_class),
        "--bootstrap-server",
        sandbox.bootstrap_servers,
        "--command-config",
        settings,
        *arguments,
    ]
    kcl = [shutil.which("kcl"), "--config-path", str(folder / "kcl.toml"), *task.kcl.split()]
    of_kops, of_apache, of_kcl = [], [], []
    for _ in range(runs):
        of_kops.append(measured(kops, folder / "kops.txt", codes=(0, 1)))  # 1: findings
        if task.apache:
            of_apache.append(measured(apache, folder / "apache.txt"))
        if task.kcl and kcl[0]:
            of_kcl.append(measured(kcl, folder / "kcl.txt"))
    printed = (folder / "kops.txt").read_text()
    assert not printed.startswith("Usage:"), f"{task.kops} is not a verb"
    assert (lines := printed.count("\n")) >= task.lines, f"{task.kops}: {lines} lines"
    mine = median(of_kops)
    text = f"  {task.kops[:44]:44} {mine.seconds:6.2f} s  CPU {mine.cpu_seconds:6.2f} s  {mine.megabytes:4} MB"
    for name, runs_of_it in (("Apache", of_apache), ("kcl", of_kcl)):
        if runs_of_it:
            other = median(runs_of_it)
            text += f"   {name} {other.seconds:6.2f} s  CPU {other.cpu_seconds:6.2f} s"
            text += f"  {other.seconds / mine.seconds:5.1f} and {other.cpu_seconds / mine.cpu_seconds:5.1f} times kops"
    print(text, flush=True)


def median(runs: Sequence[Measured]) -> Measured:
    """Return the median of each figure."""
    figures = zip(*((run.seconds, run.megabytes, run.cpu_seconds) for run in runs), strict=True)
    return Measured(*map(statistics.median_low, figures))


def context_text(sandbox: Sandbox) -> str:
    """Return a configuration file with this sandbox as the current context."""
    lines = [f"{key} = {value!r}" for key, value in sandbox.context().items()]
    return "\n".join(['current = "benchmark"', "[contexts.benchmark]", *lines, ""])


def kcl_text(sandbox: Sandbox) -> str:
    """Return the same as a configuration file of kcl."""
    connection = sandbox.connection()
    password = connection.password.reveal() if connection.password else ""
    sasl = {"method": "scram-sha-512", "user": connection.username, "pass": password}
    lines = [f"seed_brokers = {list(connection.bootstrap_servers)!r}", "[tls]", f"ca_cert_path = {str(connection.ca_file)!r}", "[sasl]"]
    return "\n".join([*lines, *(f"{key} = {value!r}" for key, value in sasl.items()), ""])


def fill(sandbox: Sandbox, acls: int, quotas: int) -> None:
    """Make ACLs of some principals, and a quota of each of many users."""
    admin = AdminClient(librdkafka_settings(sandbox.connection()))
    bindings = [binding(number) for number in range(acls)]
    for first in range(0, acls, AT_ONCE):
        for made in admin.create_acls(bindings[first : first + AT_ONCE], request_timeout=60).values():
            made.result(60)
    kafka = Kafka(sandbox.connection())
    changes = [({"user": f"user-{number:03d}"}, {"consumer_byte_rate": 1e6 + number}) for number in range(quotas)]
    for first in range(0, quotas, AT_ONCE):
        assert not any(kafka.principals.alter_quotas(changes[first : first + AT_ONCE]))
    kafka.close()


def binding(number: int) -> AclBinding:
    """Return an ACL that no other number has."""
    kind, name, pattern, operation = SHAPES[number % len(SHAPES)]
    principal = f"User:user-{number // len(SHAPES) % PRINCIPALS:03d}"
    return AclBinding(kind, name.format(number // len(SHAPES)), pattern, principal, "*", operation, AclPermissionType.ALLOW)


if __name__ == "__main__":
    raise SystemExit(main())
