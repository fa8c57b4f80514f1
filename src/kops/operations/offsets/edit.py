"""``kops offsets edit``: the offsets of a group as text, and the changes made to it as a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError, Refused, StateMoved, UsageProblem
from kops.core.models import TopicPartition
from kops.core.plan import Plan
from kops.core.selection import Selection, parse_selection
from kops.core.visible import visible
from kops.operations.offsets.choose import committed_now, group_to_move, ready_group
from kops.operations.offsets.items import offset_of
from kops.operations.offsets.plan import plan_group, selected
from kops.operations.offsets.rules import included, narrowing
from kops.operations.offsets.skip import resolve_skips
from kops.operations.offsets.strategies import Seek, seek_of
from kops.operations.services import Services

HINT = "each line is PARTITION: POSITION below its TOPIC:, as the file had it; nothing was changed"


@dataclass(frozen=True)
class Sheet:
    """The offsets of a group as text to edit.

    :param text: YAML: topic, partition, offset, with comments about what the log has
    :param offsets: the offsets in the text
    """

    group: str
    text: str
    offsets: Mapping[TopicPartition, int]


def sheet_of(services: Services, group_id: str, topics: Sequence[str] = (), *, may_be_active: bool = False) -> Sheet:
    """Return the offsets of a group as text to edit.

    :param topics: only these partitions: ``orders``, ``orders:0,3-5``, ``orders-*``
    :param may_be_active: the group may have members now, because the plan will wait for them to leave
    :raises Refused: when it has no commits there, or members
    """
    narrow = narrowing(topics)
    if not may_be_active:
        group_to_move(services, group_id, new_group=False)
    commits = committed_now(services, group_id)
    chosen = {partition: found for partition, found in commits.items() if included(partition, narrow)}
    if not chosen:
        raise Refused(f"group {group_id} shows no committed offsets{' there' if topics else ''}", hint="`kops offsets seek` commits some")
    bounds = services.kafka.offsets.bounds_or_errors(chosen)
    lines = [
        f"# Offsets of group {visible(group_id)}. Change positions, save and leave: the plan is shown before anything moves.",
        "# A position is an offset, +1 (one on from here), skip:1 (behind the next record), start, end, or a time such as @-1h.",
        "# Partitions whose lines are removed stay where they are.",
    ]
    topic = None
    for partition, committed in sorted(chosen.items()):
        if partition.topic != topic:
            topic = partition.topic
            lines.append(f'"{topic}":')
        ends = bounds[partition]
        log = visible(ends.message) if isinstance(ends, KopsError) else f"the log has {ends.log_start_offset} to {ends.log_end_offset}"
        lines.append(f"  {partition.partition}: {committed.offset}  # {log}")
    return Sheet(group_id, "\n".join(lines) + "\n", {partition: committed.offset for partition, committed in chosen.items()})


def plan_edit(services: Services, sheet: Sheet, edited: str, *, wait_empty: str | None = None) -> Plan:
    """Plan the changes made to a sheet; without changes the plan is empty.

    :raises UsageProblem: naming the line that is not a valid position
    :raises StateMoved: when a changed partition has moved while the sheet was edited
    """
    seeks = changes_of(sheet, edited, services)
    group, current = ready_group(services, sheet.group, wait_empty=wait_empty)
    selected(services, [Selection(partition.topic, (partition.partition,)) for partition in seeks])
    moved = next((p for p in sorted(seeks) if p in sheet.offsets and offset_of(current.get(p)) != sheet.offsets[p]), None)
    if moved is not None:
        raise StateMoved(
            f"{moved} has moved from {sheet.offsets[moved]} to {offset_of(current.get(moved))} while you edited",
            hint="edit again from where it is now",
            group=sheet.group,
        )
    strategies = resolve_skips(services, seeks, current)
    return plan_group(services, sheet.group, group, strategies, current, summary=f"edit group {sheet.group}")


def changes_of(sheet: Sheet, edited: str, services: Services) -> dict[TopicPartition, Seek]:
    """Return the positions that an edited sheet has changed or added, by partition.

    :raises UsageProblem: naming the line that is not a valid position
    """
    now = services.now()
    seeks: dict[TopicPartition, Seek] = {}
    seen: set[TopicPartition] = set()
    for line, topic, number, text in _entries(edited):
        try:
            selection, seek = seek_of(f"{topic}:{number}={text}", now)
        except UsageProblem as problem:
            raise _wrong(line, problem.message) from None
        partition = TopicPartition(selection.topic, (selection.partitions or (0,))[0])
        if selection.partitions is None or len(selection.partitions) > 1 or partition in seen:
            raise _wrong(line, f"{partition} is named twice" if partition in seen else f"{number!r} is not a partition")
        seen.add(partition)
        if text != str(sheet.offsets.get(partition)):
            seeks[partition] = seek
    return seeks


def _entries(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield line, topic, partition and position of each entry, as they are written."""
    import yaml

    try:
        root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _wrong(mark.line + 1 if mark else 1, str(getattr(error, "problem", None) or "it is not valid YAML")) from None
    except RecursionError:
        raise _wrong(1, "it is nested too deeply") from None
    if root is None:
        return
    for topic, partitions in _pairs(root):
        try:
            parse_selection(topic.value)
        except UsageProblem as problem:
            raise _wrong(topic.start_mark.line + 1, problem.message) from None
        if isinstance(partitions, yaml.ScalarNode) and partitions.tag.endswith(":null"):
            continue  # all of its lines were removed
        for number, position in _pairs(partitions):
            if not isinstance(position, yaml.ScalarNode):
                raise _wrong(position.start_mark.line + 1, "a position is one word")
            yield position.start_mark.line + 1, topic.value, number.value, position.value


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise _wrong(node.start_mark.line + 1, "this is not a list of PARTITION: POSITION")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _wrong(key.start_mark.line + 1, "a name is one word")
        yield key, value


def _wrong(line: int, what: str) -> UsageProblem:
    return UsageProblem(f"line {line} of the edited file: {what}", hint=HINT, line=line)
