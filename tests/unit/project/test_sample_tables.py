"""Tables in README, docs and examples have the headings that kops prints for that verb, in their order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from kops.cli import client_metrics, quotas, replay, schemas, share_groups, tokens, transactions, users
from kops.cli.brokers import look as brokers
from kops.cli.cluster import look as cluster
from kops.cli.connect import describe as connectors
from kops.cli.frame import plan_view
from kops.cli.frame.carry_out import RESULT_COLUMNS
from kops.cli.frame.main import cli
from kops.cli.records import dead_letters as records_dead_letters
from kops.cli.records import produce as records_produce
from kops.cli.state import commands as state
from kops.cli.state import snapshot as state_snapshot
from kops.cli.topics import change, look, replicas
from kops.output.table import Column, as_columns

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")))
WORDS = re.compile(r"(?:^|[|;{(] *|\bdo )kops ([a-z-]+)(?: ([a-z-]+))?(?: ([a-z-]+))?")
HEADING = re.compile(r"[A-Z][A-Z -]*(?:  +[A-Z][A-Z -]*)+")


def headings(columns: Sequence[str | Column]) -> tuple[str, ...]:
    return tuple(column.heading for column in as_columns(columns))


PLANS = headings([*plan_view.COLUMNS[:-1], "delta", plan_view.COLUMNS[-1]])
RESULTS = headings(RESULT_COLUMNS)
FROM_CODE = {
    "brokers config": [headings(brokers.SETTING_COLUMNS)],
    "brokers list": [headings(brokers.SHARE_COLUMNS), headings(brokers.DISK_COLUMNS)],
    "brokers log-dirs": [headings(brokers.DISK_COLUMNS), headings(brokers.REPLICA_COLUMNS)],
    "cluster describe": [headings(cluster.VOTER_COLUMNS), headings(cluster.BROKER_COLUMNS), headings(cluster.FEATURE_COLUMNS)],
    "cluster features": [headings((*cluster.FEATURE_COLUMNS, Column("brings", "UPGRADE BRINGS"), "final"))],
    "cluster quorum": [headings((*cluster.VOTER_COLUMNS, "directory"))],
    "client-metrics list": [headings(client_metrics.COLUMNS)],
    "connect list": [headings(connectors.LIST_COLUMNS)],
    "connect status": [headings(connectors.STATUS_COLUMNS)],
    "records dead-letters": [headings(records_dead_letters.COLUMNS), headings(records_dead_letters.COUNTS)],
    "records produce": [headings(records_produce.COLUMNS)],
    "replay archive": [headings(replay.ARCHIVE_COLUMNS)],
    "quotas list": [headings(quotas.COLUMNS)],
    "quotas explain": [headings(quotas.EXPLAINED)],
    "schemas list": [headings(schemas.COLUMNS)],
    "share-groups lag": [headings(share_groups.COLUMNS)],
    "transactions list": [headings(transactions.OPEN_COLUMNS), headings(transactions.ID_COLUMNS)],
    "users list": [headings(users.COLUMNS)],
    "tokens list": [headings(tokens.COLUMNS)],
    "state snapshot": [headings(state_snapshot.STORE_COLUMNS)],
    "state verify": [headings(state.VERIFY_COLUMNS)],
    "topics diff": [headings(change.COLUMNS)],
    "topics describe": [headings((*look.PARTITION_COLUMNS, "size")), headings(look.SETTING_COLUMNS), headings(look.READER_COLUMNS)],
    "topics reassignments": [headings(replicas.UNDER_WAY_COLUMNS)],
    "topics list": [headings((*look.LIST_COLUMNS, *look.TROUBLE_COLUMNS)), headings(("name", *look.LONG_COLUMNS, *look.TROUBLE_COLUMNS))],
}
AS_PRINTED = {
    "changelog inspect": ["P OFFSET TIMESTAMP KEY VALUE", "P KEY START END VALUE"],
    "connect offsets": ["CONNECTOR PARTITION OFFSET END LAG"],
    "connect plugins": ["PLUGIN JARS DIRECTORY"],
    "context list": ["NAME CURRENT BOOTSTRAP_SERVERS SECURITY_PROTOCOL PROTECTED READ_ONLY"],
    "context show": ["SETTING SOURCE VALUE"],
    "groups describe": ["GROUP TYPE STATE MEMBERS PROTOCOL COORDINATOR", "GROUP CLIENT_ID HOST ASSIGNMENT"],
    "groups lag": ["TOPIC PART COMMITTED END LAG TIME NOTE", "GROUP STATE PARTITIONS LAG LARGEST TIME NO_COMMIT"],
    "groups list": ["GROUP TYPE STATE"],
    "journal list": ["ID STATUS OPERATION CONTEXT SUMMARY"],
    "offsets history": ["TIME TOPIC PARTITION EVENT OFFSET MOVED LEADER_EPOCH METADATA", "TOPIC PARTITION OFFSET COMMITTED NOTE"],
    "offsets show": ["TOPIC PARTITION OFFSET LEADER_EPOCH STREAM_TIME METADATA"],
    "records consume": ["P OFFSET TIMESTAMP KEY HEADERS VALUE"],
    "records peek": ["NEXT TOPIC P OFFSET TIMESTAMP KEY HEADERS VALUE"],
    "schemas check": ["SUBJECT VERSION LEVEL COMPATIBLE"],
    "state diff": ["P KEY START END STATUS TIMESTAMP VALUE"],
    "state query": ["STORE P KEY TIMESTAMP VALUE", "STORE P KEY START END VALUE"],
    "streams capture": ["STORE KIND SUB-TOPOLOGY CHANGELOG"],
    "streams describe": [
        "INSTANCE MEMBERS ACTIVE STANDBY",
        "STORE PARTITION TASK ACTIVE STANDBY NOTE",
        "SUB-TOPOLOGY READS WRITES STORES TASKS",
        "STORE SUB-TOPOLOGY PARTITIONS CHANGELOG",
        "TOPIC STORE DIFFERENCE PROGRAM CLUSTER",
    ],
    "topics offsets": [
        "TOPIC PARTITION LOG_START LOG_END OFFSETS AT OF SINCE",
        "TOPIC PARTITION LOG_START LOG_END OFFSETS LOCAL_START TIERED_UP_TO",
    ],
}
"""Of verbs that put their columns together when they run; a space in a heading is written as ``_``."""
KNOWN = FROM_CODE | {
    verb: [tuple(heading.replace("_", " ") for heading in line.split()) for line in lines] for verb, lines in AS_PRINTED.items()
}


def tables(page: Path) -> Iterator[tuple[list[str], tuple[str, ...], str]]:
    """Yield the commands that may have printed a table, its headings, and the row below them."""
    inside, verbs = False, list[str]()
    lines = page.read_text(encoding="utf-8").splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("```"):
            inside, verbs = not inside, []
        elif inside and line.startswith("$ "):
            verbs = [" ".join(word for word in words if word) for words in WORDS.findall(line.removeprefix("$ "))]
        elif inside and verbs and HEADING.fullmatch(line.rstrip()):
            yield verbs, tuple(re.split(r"  +", line.strip())), below


def command_of(verb: str) -> tuple[str, click.Command]:
    command: click.Command = cli
    path = []
    for word in verb.split():
        following = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if following is None:
            break
        command = following
        path.append(word)
    return " ".join(path), command


def part_of(some: Sequence[str], every: Sequence[str]) -> bool:
    rest = iter(every)
    return all(any(heading == other for other in rest) for heading in some)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_have_the_headings_that_are_printed(page: Path) -> None:
    wrong = []
    for verbs, shown, row in tables(page):
        possible = []
        for verb in verbs:
            path, command = command_of(verb)
            changes = any(param.name == "plan_out" for param in command.params)
            possible += [*KNOWN.get(" ".join(path.split()[:2]), []), *([PLANS, RESULTS] if changes else [])]
        moves_offsets = verbs[0].startswith("offsets ") and {"ACTION", "BEFORE", "AFTER"} <= set(shown) and " move " in row
        if not any(part_of(shown, every) for every in possible) or (moves_offsets and "DELTA" not in shown):
            wrong.append(f"kops {verbs[0]}: {'  '.join(shown)}")
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("verb", AS_PRINTED)
def test_headings_are_written_in_the_code(verb: str) -> None:
    _, command = command_of(verb)
    owners = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    sources = {owner.callback.__module__ for owner in owners if owner.callback}
    written = {name for source in sources for name in constants(source, depth=2)}
    missing = [heading for shown in KNOWN[verb] for heading in shown if heading not in written]
    assert not missing


@cache
def constants(module: str, depth: int) -> set[str]:
    """Return the headings that the texts of a module, and of what it imports from the command line and the output, can become."""
    spec = find_spec(module)
    assert spec and spec.origin
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    found = {text.upper().replace("_", " ") for text in texts}
    if depth:
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        for name in imported:
            if name.startswith(("kops.cli", "kops.output", "kops.operations", "kops.core")) and name != "kops.cli.frame.main":
                found |= constants(name, depth - 1)
    return found
