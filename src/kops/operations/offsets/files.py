"""Files with positions for groups: Apache's CSV, the JSON of ``kops offsets export``, and positions as YAML or JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kops.config.files import parse_json, read_text
from kops.config.yaml_files import parse_documents
from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets.apache_csv import OffsetRow, read_offsets
from kops.core.offsets.arithmetic import Stay, Strategy, ToCurrent, ToOffset
from kops.core.selection import Selection, parse_selection
from kops.operations.offsets.rules import Rule
from kops.operations.offsets.strategies import not_negative, position_strategy

POSITIONS_HINT = "a list of topic, partitions (all without), position such as 1200, +1, end or @-1h, and group where the file has several"
OFFSETS_HINT = "an array of objects with topic, partition, offset and perhaps group"


FILE_HINT = "name a file that `kops offsets export` or Apache's --export wrote, or a list of positions"


def offset_rows(text: str, path: Path) -> list[OffsetRow]:
    """Parse Apache's CSV, or the JSON of ``kops offsets export``."""
    return _json_rows(text, path) if text.lstrip().startswith("[") else read_offsets(text, name=str(path))


def file_rules(path: Path, now: datetime, narrow: Sequence[Rule] = (), groups: Collection[str] | None = None) -> list[Rule]:
    """Return a rule per line or entry of a file; lines without a group apply to any group.

    :param now: the time that positions such as ``@-1h`` are relative to
    :param narrow: only these topics and partitions; empty: the whole file
    :param groups: only these groups, each of which the file must have something for; None: all that it has
    :raises UsageProblem: naming the line that is not valid
    """
    text = read_text(path, hint=FILE_HINT)
    body = _positions(text, path)
    if body is not None:
        rules = [_position_rule(row, f"entry {number} of {path}", now) for number, row in enumerate(body, start=1)]
    else:
        rules = [
            Rule(row.partition.topic, ToOffset(row.offset), (row.partition.partition,), group=row.group) for row in offset_rows(text, path)
        ]
    if groups is None:
        return narrowed(rules, narrow, path)
    named = {rule.group for rule in rules}
    for group in sorted(groups):
        if named.isdisjoint((None, group)):
            others = ", ".join(sorted(str(name) for name in named)[:5])
            raise UsageProblem(f"{path} has no offsets of group {group}", hint=f"it has those of {others}")
    return narrowed([rule for rule in rules if rule.group is None or rule.group in groups], narrow, path)


def file_offsets(path: Path, group_id: str, selections: Sequence[Selection], now: datetime) -> dict[Selection, Strategy | Stay]:
    """Return the positions in a file for the partitions of one group.

    :param selections: only these; empty: the whole file
    :raises UsageProblem: when it has nothing for the group, or names a partition twice
    """
    narrow = [Rule(one.topic, ToCurrent(), one.partitions) for one in selections]
    found: dict[Selection, Strategy | Stay] = {}
    for rule in file_rules(path, now, narrow, [group_id]):
        selection = Selection(str(rule.topic), rule.partitions)
        if found.setdefault(selection, rule.strategy) != rule.strategy:
            raise UsageProblem(f"{path} names {selection} twice", hint="give one position to each partition")
    return found


def narrowed(rules: Sequence[Rule], narrow: Sequence[Rule], path: Path) -> list[Rule]:
    """Keep only the rules for some topics and partitions, or all if ``narrow`` is empty.

    :raises UsageProblem: when there are none
    """
    kept = [rule for rule in rules if not narrow or any(_covers(one, rule) for one in narrow)]
    if not kept:
        names = ", ".join(str(Selection(str(one.topic), one.partitions)) for one in narrow)
        raise UsageProblem(f"{path} has no offsets of {names}", hint="leave --topic out to take the whole file")
    return kept


def _positions(text: str, path: Path) -> list[Mapping[str, Any]] | None:
    """Return the entries of a list of positions; None if the file has another format."""
    start = text.lstrip()
    if start.startswith("["):
        body = parse_json(text, str(path), hint=OFFSETS_HINT)
    elif start.startswith(("- ", "-\n")) or path.suffix in (".yaml", ".yml"):
        bodies = parse_documents(text, str(path), hint=POSITIONS_HINT)
        body = bodies[0] if len(bodies) == 1 else None
        if not isinstance(body, list) or not all(isinstance(row, dict) for row in body):
            raise UsageProblem(f"{path} is not a list of positions", hint=POSITIONS_HINT)
        return [_with_offset(row) for row in body]
    else:
        return None
    entries = isinstance(body, list) and all(isinstance(row, dict) for row in body) and any("position" in row for row in body)
    return [_with_offset(row) for row in body] if entries else None


def _with_offset(row: Mapping[str, Any]) -> Mapping[str, Any]:
    renamed = {"offset": "position", "partition": "partitions"}
    return {renamed.get(key, key): value for key, value in row.items()}


def _position_rule(row: Mapping[str, Any], where: str, now: datetime) -> Rule:
    unknown = row.keys() - {"group", "topic", "partitions", "position"}
    if unknown or not row.keys() >= {"topic", "position"}:
        what = f"has an unknown key {min(map(str, unknown))}" if unknown else "has no topic or no position"
        raise UsageProblem(f"{where} {what}", hint=POSITIONS_HINT)
    partitions = row.get("partitions")
    if isinstance(partitions, (list, tuple)):
        partitions = ",".join(map(str, partitions))
    try:
        selection = parse_selection(str(row["topic"]) + ("" if partitions is None else f":{partitions}"))
        strategy: Strategy = position_strategy(str(row["position"]), now)
    except UsageProblem as problem:
        raise UsageProblem(f"{where}: {problem.message}", hint=problem.hint) from None
    group = row.get("group")
    return Rule(selection.topic, strategy, selection.partitions, group=None if group is None else str(group))


def _covers(narrow: Rule, rule: Rule) -> bool:
    if rule.topic is None or rule.topic not in narrow.topics_of([rule.topic]):
        return False
    return narrow.partitions is None or (rule.partitions is not None and set(rule.partitions) <= set(narrow.partitions))


def _json_rows(text: str, path: Path) -> list[OffsetRow]:
    body = parse_json(text, str(path), hint=OFFSETS_HINT)
    return [_json_row(row, f"element {number} of {path}") for number, row in enumerate(body, 1)]


def _json_row(row: Any, where: str) -> OffsetRow:
    if not isinstance(row, dict) or not isinstance(row.get("topic"), str) or not isinstance(row.get("group"), (str, type(None))):
        raise UsageProblem(f"{where} names no partition", hint=OFFSETS_HINT)
    partition, offset = (_whole(row.get(name), f"{where}: {name}") for name in ("partition", "offset"))
    try:
        parse_selection(f"{row['topic']}:{partition}")
        not_negative(offset)
    except UsageProblem as problem:
        raise UsageProblem(f"{where}: {problem.message}", hint=problem.hint) from None
    return OffsetRow(row.get("group"), TopicPartition(row["topic"], partition), offset)


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageProblem(f"{where} is {value!r}, not a whole number", hint=OFFSETS_HINT)
    return value
