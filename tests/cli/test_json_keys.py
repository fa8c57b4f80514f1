"""The keys of every command's JSON are a contract: programs read them. `json_keys.yaml` pins them.

A key that is missing here breaks somebody's script; a new one is added to the file with the change that brings it.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from kops.cli.frame.main import cli
from support.json_keys import PINNED, keys_of
from support.topics import commit

pytestmark = pytest.mark.broker

TESTS = Path(__file__).parents[1]
NO_JSON = {"kops completion", "kops demo", "kops help", "kops offsets edit"}
"""Scripts, a tour and an editor: no data of their own."""
CONNECT = (
    "workers",
    "alter",
    "plugins list",
    "plugins describe",
    "plugins add",
    "list",
    "status",
    "describe",
    "validate",
    "diff",
    "apply",
    "pause",
    "resume",
    "stop",
    "restart",
    "delete",
    "offsets show",
    "offsets alter",
    "offsets reset",
    "loggers list",
    "loggers set",
)
BROKERS = ("alter", "drain", "demote", "move-replicas", "unregister")
ELSEWHERE = {
    "kops state rebuild": "tests/streams",
    "kops state verify": "tests/streams",
    "kops state diff": "tests/streams",
    "kops state init": "tests/streams",
    "kops state snapshot": "tests/streams",
    "kops state restore": "tests/streams",
    "kops state repartition": "tests/streams",
    "kops streams capture": "tests/streams",
    "kops streams list": "tests/streams/test_streams_live.py",
    "kops streams describe": "tests/streams/test_streams_live.py",
    "kops streams reset": "tests/streams",
    "kops streams delete": "tests/streams",
    "kops sandbox up": "tests/unit/sandbox/test_json_keys.py",
    "kops sandbox down": "tests/unit/sandbox/test_json_keys.py",
    "kops sandbox logs": "tests/unit/sandbox/test_json_keys.py",
    "kops sandbox status": "tests/unit/sandbox/test_json_keys.py",
    "kops replay run": "tests/replay",
    "kops replay resume": "tests/replay",
    "kops replay archive": "tests/replay",
    "kops replay restore": "tests/replay",
    "kops replay redrive": "tests/replay",
    "kops plugins list": "tests/plugins",
    **{f"kops connect {verb}": "tests/connect" for verb in CONNECT},
    "kops journal finish": "tests/cli/test_signals.py",
    "kops topics reassignments": "tests/sandbox/test_reassign.py",
    **{f"kops brokers {verb}": "tests/sandbox/test_reassign.py" for verb in BROKERS},
    **{f"kops transactions {verb}": "tests/broker/test_hanging_transactions.py" for verb in ("list", "describe", "producers", "abort")},
    **{f"kops share-groups {verb}": "tests/broker/test_share_groups.py" for verb in ("lag", "reset", "delete-offsets", "delete")},
    **{f"kops groups {verb}": "tests/broker/test_groups_members.py" for verb in ("config", "alter")},
    "kops groups remove-members": "tests/broker/test_groups_members.py",
    **{f"kops cluster features {verb}": "tests/broker/test_cluster_change.py" for verb in ("upgrade", "downgrade")},
    **{f"kops cluster quorum {verb}": "tests/broker/test_cluster_change.py" for verb in ("add", "remove")},
    **{f"kops client-metrics {verb}": "tests/broker/test_client_metrics.py" for verb in ("list", "set", "delete")},
    **{
        f"kops acls {verb}": "tests/broker/test_acls.py"
        for verb in ("list", "create", "delete", "grant", "revoke", "explain", "audit", "export")
    },
    **{f"kops tokens {verb}": "tests/broker/test_tokens.py" for verb in ("list", "create", "renew", "expire")},
    "kops schemas list": "tests/broker/test_schemas.py",
    "kops schemas show": "tests/broker/test_schemas.py",
    "kops schemas check": "tests/broker/test_schemas.py",
    "kops schemas register": "tests/broker/test_schemas.py",
    "kops schemas delete": "tests/broker/test_schemas.py",
    "kops schemas config": "tests/broker/test_schemas.py",
}
"""Their JSON is checked where a Kafka Streams application or a Kafka of its own is there."""


COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def names():
    import uuid

    return {name: f"keys-{name}-{uuid.uuid4().hex[:8]}" for name in ("topic", "group", "new", "other", "gone", "application", "user")}


@pytest.fixture
def scene(configured, broker, run_kops, names, tmp_path):
    """A topic with records, a group that read one of them, and a journal."""
    topic, group = names["topic"], names["group"]
    changelog = f"{names['application']}-totals-changelog"
    run_kops("topics", "create", topic, "--partitions", "2", "--if-not-exists", "--yes").ok()
    run_kops(
        "topics", "create", changelog, "--partitions", "1", "--compacted", "--config", "segment.ms=60000", "--if-not-exists", "--yes"
    ).ok()
    run_kops("records", "produce", topic, "--partition", 0, "--key", "k", "--value", "v", "--header", "__connect.errors.topic=x").ok()
    commit(broker, topic, group)
    run_kops("context", "add", "keys", "--bootstrap-servers", broker.bootstrap_servers).ok()
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "topics.yaml").write_text(f"name: {topic}\npartitions: 2\nconfig:\n  retention.ms: 3600000\n")
    table = {"from": {"topic": topic, "key": "string", "value": "string"}, "changelog": topic}
    (tmp_path / "state.yaml").write_text(json.dumps({"application": group, "stores": {"table": table}}))
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    run_kops("topics", "alter", topic, "--config", f"retention.ms={3_600_000 + next(COUNT)}", "--yes").ok()
    run_kops("topics", "alter", topic, "--config", "retention.ms=3600000", "--plan-out", tmp_path / "plan.json").ok()
    user = ("--user", names["user"])
    run_kops("users", "create", names["user"], "--password-file", tmp_path / "client.properties", "--yes")
    run_kops("quotas", "set", *user, f"consumer_byte_rate={1000 + next(COUNT)}", "--yes").ok()
    yield {**names, "folder": tmp_path}
    run_kops("quotas", "remove", *user, "--yes").ok()
    run_kops("users", "delete", names["user"], "--confirm", names["user"])
    run_kops("groups", "delete", group, "--confirm", group)
    for name in (names["topic"], names["new"], changelog):
        run_kops("topics", "delete", name, "--if-exists", "--confirm", name)


RUNS: dict[str, str] = {
    "kops cluster describe": "",
    "kops cluster health": "",
    "kops cluster brokers": "",
    "kops cluster export": "{folder}/exported",
    "kops cluster diff": "{folder}/topics",
    "kops cluster apply": "{folder}/topics --dry-run",
    "kops cluster features list": "",
    "kops cluster quorum show": "",
    "kops cluster api-versions": "",
    "kops brokers list": "",
    "kops brokers describe": "1",
    "kops brokers config": "",
    "kops brokers log-dirs": "",
    "kops brokers log-dirs --replicas": "",
    "kops topics list": "{topic} --long",
    "kops topics describe": "{topic}",
    "kops topics offsets": "{topic}",
    "kops topics diff": "{folder}/topics",
    "kops topics create": "{new} --partitions 1 --yes",
    "kops topics alter": "{topic} --config retention.ms=7200000 --yes",
    "kops topics reassign": "{topic} --replication-factor 1 --dry-run",
    "kops topics elect-leaders": "{topic} --dry-run",
    "kops topics add-partitions": "{topic} --partitions 2 --yes",
    "kops topics apply": "{folder}/topics --dry-run",
    "kops topics truncate": "{topic} --to end --confirm {topic}",
    "kops topics delete": "{topic} --dry-run",
    "kops records consume": "{topic}",
    "kops records produce": "{topic} --key k --value v",
    "kops records peek": "{group}",
    "kops records dead-letters": "{topic}",
    "kops records dead-letters --count": "{topic}",
    "kops groups list": "{group}",
    "kops groups describe": "{group}",
    "kops groups lag": "{group}",
    "kops groups lag --by group": "{group}",
    "kops groups lag --by topic": "{group}",
    "kops groups delete": "{group} --dry-run",
    "kops offsets show": "{group}",
    "kops offsets export": "{group}",
    "kops offsets seek": "{group} {topic}:0=end --dry-run",
    "kops offsets reset": "{group} --topic {topic} --to-earliest --yes",
    "kops offsets copy": "{group} {other} --new-group --dry-run",
    "kops offsets delete": "{group} --topic {topic} --dry-run",
    "kops offsets history": "{group}",
    "kops users list": "",
    "kops users create": "{new} --password-file {folder}/state.yaml --dry-run",
    "kops users alter": "{user} --password-file {folder}/state.yaml --dry-run",
    "kops users delete": "{user} --dry-run",
    "kops quotas list": "--user {user}",
    "kops quotas set": "--user {user} request_percentage=50 --yes",
    "kops quotas remove": "--user {user} --dry-run",
    "kops quotas explain": "--user {user} --ip 10.0.0.1",
    "kops changelog list": "{application}",
    "kops changelog inspect": "{topic}",
    "kops changelog get": "{topic} k --all-partitions",
    "kops changelog history": "{topic} k --all-partitions",
    "kops changelog stats": "{topic}",
    "kops state query": "{folder}/state.yaml --all",
    "kops diagnose": "{group}",
    "kops context list": "",
    "kops context show": "",
    "kops context add": "another --bootstrap-servers 127.0.0.1:1 --no-test",
    "kops context use": "keys",
    "kops context test": "keys",
    "kops context import": "{folder}/client.properties --name imported",
    "kops context remove": "keys --yes",
    "kops journal list": "",
    "kops journal show": "last",
    "kops doctor": "",
    "kops version": "",
    "kops undo": "last --dry-run",
    "kops apply": "{folder}/plan.json --yes",
}


UNPINNED = {
    "kops acls explain": "its test has the keys: entries stand in it only where one decides",
    "kops acls audit": "findings, whose keys `kops diagnose` pins",
    "kops acls export": "documents, which `kops cluster apply` reads back in a test",
    **{f"kops schemas {verb}": "its test has the keys, which depend on the registry" for verb in ("list", "show", "check")},
    **{f"kops sandbox {verb}": "support/json_keys.py has the keys" for verb in ("up", "down", "logs", "status")},
    **{f"kops {verb}": "its test has the keys" for verb in ("connect plugins add", "plugins list")},
}
"""Verbs that change no cluster, whose keys no file of keys has, and why."""


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Name every verb of kops."""
    if isinstance(command, click.Group):
        context = click.Context(command, **cli.context_settings)
        for verb in command.list_commands(context):
            yield from commands(command.get_command(context, verb), f"{name} {verb}")
    else:
        yield name, command


def _named(command: str, file: Path) -> bool:
    """Whether a file of keys has a command, by its whole name or without its noun."""
    return bool({command, command.split(maxsplit=2)[2]} & set(yaml.safe_load(file.read_text(encoding="utf-8"))))


def test_every_command_is_pinned():
    """Here, or in the file of keys of the folder that its test is in; what changes a cluster prints what every change does."""
    found = dict(commands(cli, "kops"))
    known = {*RUNS, *NO_JSON, *ELSEWHERE}
    assert set(found) - known == set()
    elsewhere = {name: TESTS.parent / place for name, place in ELSEWHERE.items()}
    for name in set(PINNED) - set(RUNS):
        assert f'as_pinned("{name}"' in elsewhere[name].read_text(encoding="utf-8"), name
    changing = {name for name, one in found.items() if any("--plan-out" in param.opts for param in one.params)}
    own = {name for name, place in elsewhere.items() if (file := place / "json_keys.yaml").exists() and _named(name, file)}
    assert set(found) - changing - set(PINNED) - own - NO_JSON == set(UNPINNED)


AS_FOUND = {"kops diagnose": "findings[]"}
"""Keys that are there only where something was found, which other commands of this module may have caused."""


@pytest.mark.parametrize("command", RUNS)
def test_the_keys_are_those_that_programs_know(scene, run_kops, command):
    arguments = [word.format(**scene) for word in RUNS[command].split()]
    done = run_kops(*command.split()[1:], *arguments, "-o", "json")
    assert done.out, done.err
    found = sorted(key for key in keys_of(done.out) if not key.startswith(AS_FOUND.get(command, "-")))
    assert found == PINNED[command], f"too many: {set(found) - set(PINNED[command])}; too few: {set(PINNED[command]) - set(found)}"
