"""``diff --against``: the changelogs of two applications with the same stores, side by side. Nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kops.core.errors import NotFound
from kops.core.models import Bounds, TopicPartition
from kops.core.statefile import StateFile
from kops.core.topics.names import topics_not_found
from kops.operations.services import Services
from kops.operations.state.compare import Comparison
from kops.operations.state.compute import DIFFERENT, EQUAL, UNCLEAR
from kops.operations.state.engine import drop_stage, new_stage, start_engine
from kops.operations.state.key_rows import key_rows
from kops.operations.state.switch_names import renamed

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange


def diff_against(services: Services, state_file: StateFile, other: str, *, limit: int, master: str | None = None) -> Comparison:
    """Compare the stores of a state file with those of another application; ``expected`` is the state file's.

    Where the numbers of partitions differ, a key may lie anywhere.

    :param other: the other ``application.id``
    :param limit: the most rows for each store
    :raises NotFound: when a changelog does not exist
    """
    from kops.spark.driver.failures import explained
    from kops.spark.staging.stage import stage_difference_of

    engine = start_engine(services, master)
    named = renamed(state_file, other)
    isolation = "read_committed" if state_file.exactly_once else "read_uncommitted"
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    differing, unseen = 0, []
    for store, their in zip(state_file.stores, named.stores, strict=True):
        ranges = [_range(services, topic, isolation, state_file) for topic in (store.changelog, their.changelog)]
        stage = new_stage(services, state_file.application)
        services.progress.step(f"comparing {store.changelog} with {their.changelog}")
        try:
            with explained(f"compare {store.changelog}"), engine.reading(*ranges):
                staged = stage_difference_of(engine.kafka(), ranges[0], ranges[1], stage)
            found = sum(count for actions in staged.actions.values() for name, count in actions.items() if name != "erased")
            shown = key_rows(engine, store, stage, limit) if found else []
        finally:
            drop_stage(stage)
        differing += found
        if not any(wanted.records for wanted in ranges):
            unseen.append(store.name)
        rows += shown
        if found > len(shown):
            notes.append(f"{store.name}: {found:,} keys differ, {len(shown):,} are shown; --limit shows more")
    if unseen:
        notes.append(f"neither changelog has any record, so nothing was compared: {', '.join(unseen)}")
    same = [store.name for store in state_file.stores if store.name not in unseen]
    if same and not differing:
        notes.append(f"{state_file.application} and {other} hold the same: {', '.join(same)}")
    return Comparison(rows, differing, notes, DIFFERENT if differing else UNCLEAR if unseen else EQUAL)


def _range(services: Services, topic: str, isolation: str, state_file: StateFile) -> TopicRange:
    from kops.spark.reading.ranges import TopicRange

    partitions, problems = services.kafka.offsets.partitions_or_errors([topic])
    if isinstance(problems.get(topic), NotFound):
        raise topics_not_found([topic], hint="`kops topics list '*-changelog'` shows those that exist")
    if topic in problems:
        raise problems[topic]
    bounds: dict[TopicPartition, Bounds] = services.kafka.offsets.bounds(partitions[topic], isolation=isolation)
    ranges = {at.partition: (bound.log_start_offset, bound.log_end_offset) for at, bound in bounds.items()}
    return TopicRange(topic, ranges, read_committed=state_file.exactly_once, headers=True)
