"""What changelogs hold, staged twice for a move to another number of partitions: where the keys will be, and as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import ConfigError, Refused
from kops.core.findings import counted
from kops.core.models import Bounds, TopicPartition
from kops.core.plan import Item
from kops.core.statefile import StateFile
from kops.core.statefile.models import SESSION
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import STAGES_KEPT_DAYS, Engine, drop_stage, new_stage
from kops.operations.protocol.journal import Journal
from kops.operations.services import Services
from kops.operations.state.arguments import StoreWrite
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.internal_topics import TopicChange
from kops.operations.state.stored_keys import suffix_length

if TYPE_CHECKING:
    from kops.spark.stores.repartition import RepartitionedStore

BUFFER_SUFFIX, SESSION_SUFFIX = 8, 16
"""Bytes after the application's key in a buffer of suppress: a window's start, or a session's bounds
(``TimeWindowedSerializer``, ``SessionWindowedSerializer``).
"""


@dataclass(frozen=True)
class MovableChangelog:
    """A changelog that can be moved.

    :param suffix: number of bytes in its keys after the application's own key
    :param history_ms: of a versioned store
    """

    name: str
    changelog: str
    suffix: int
    history_ms: int | None = None


def movables(state_file: StateFile) -> Iterator[MovableChangelog]:
    """Yield the changelogs of a state file: its stores', and those of the buffers of ``suppress()`` behind them."""
    for store in state_file.stores:
        yield MovableChangelog(store.name, store.changelog, suffix_length(store.type), store.history_ms)
        if store.window is not None and store.window.buffer is not None:
            suffix = SESSION_SUFFIX if store.window.kind == SESSION else BUFFER_SUFFIX
            yield MovableChangelog(f"{store.name} (suppress)", store.window.buffer, suffix)


@dataclass(frozen=True)
class MovedChangelog:
    store: MovableChangelog
    stage: str
    prior_stage: str
    done: RepartitionedStore

    @property
    def write(self) -> StoreWrite:
        return StoreWrite(
            changelog=self.store.changelog,
            stage=self.stage,
            contents=held_json(self.done.after),
            in_order=self.store.history_ms is not None,
            with_headers=bool(self.done.with_headers),
            prior_stage=self.prior_stage,
            prior_contents=held_json(self.done.before),
        )

    def items(self) -> list[Item]:
        """Return one item per new partition that gets records."""
        return [
            Item(f"{self.store.changelog}:{number}", "append", 0, found.records, f"{found.records:,} of {counted(self.done.keys, 'key')}")
            for number, found in sorted(self.done.after.items())
        ]


def stage_changelogs(
    engine: Engine,
    state_file: StateFile,
    changes: Sequence[TopicChange],
    bounds: Mapping[TopicPartition, Bounds],
    partitions: int,
    *,
    why_misplaced: Callable[[str], str],
) -> list[MovedChangelog]:
    """Stage every changelog that is recreated.

    :param why_misplaced: says what can have put keys of a store elsewhere than the default partitioner
    :raises Refused: when its keys are where no default partitioner puts them
    """
    recreated = {change.name for change in changes}
    done: list[MovedChangelog] = []
    try:
        for store in movables(state_file):
            if store.changelog in recreated:
                here = {at.partition: bound for at, bound in bounds.items() if at.topic == store.changelog}
                done.append(_stage(engine, state_file, store, here, partitions=partitions))
                _refuse_unmovable(engine, state_file, done[-1], why_misplaced)
    except BaseException:
        drop_stage(*(stage for found in done for stage in (found.stage, found.prior_stage)))
        raise
    return done


def _stage(
    engine: Engine, state_file: StateFile, store: MovableChangelog, bounds: Mapping[int, Bounds], *, partitions: int
) -> MovedChangelog:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.repartition import stage_repartitioned

    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in bounds.items()}
    changelog = TopicRange(store.changelog, ranges, read_committed=state_file.exactly_once, headers=True)
    stage, prior = new_stage(engine.services, state_file.application), _kept_stage(engine.services, state_file.application)
    engine.services.progress.step(f"reading {counted(changelog.records, 'record')} of {store.changelog}")
    with explained(f"read {store.changelog}"), engine.reading(changelog):
        done = stage_repartitioned(
            engine.kafka(), changelog, (stage, prior), partitions=partitions, suffix=store.suffix, history_ms=store.history_ms
        )
    return MovedChangelog(store, stage, prior, done)


def _refuse_unmovable(engine: Engine, state_file: StateFile, found: MovedChangelog, why_misplaced: Callable[[str], str]) -> None:
    if found.done.misplaced:
        raise Refused(
            f"store {found.store.name}: {found.done.misplaced:,} of {found.done.keys:,} keys are not where a default partitioner puts them",
            hint=why_misplaced(found.store.name),
        )
    earliest = [content.earliest for content in found.done.after.values() if content.records]
    refuse_time_zero(engine.services, found.store.changelog, earliest, exactly_once=state_file.exactly_once)


def _kept_stage(services: Services, application: str) -> str:
    """Return the path of a stage that is kept, however old, until the operator confirms that it is no longer needed."""
    place = new_stage(services, application)
    if "://" in place:
        return f"{place}-kept"
    stage = Path(place)
    folder = stage.parent.with_name("kept")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_unused(services, folder)
    return str(folder / stage.name)


def _forget_unused(services: Services, folder: Path) -> None:
    """Delete what was staged for old plans that were not carried out."""
    limit = time.time() - STAGES_KEPT_DAYS * 86_400
    old = [stage for stage in folder.iterdir() if stage.stat().st_mtime < limit]
    if not old:
        return
    damaged: list[ConfigError] = []
    entries = list(Journal(services.directories.state / "journal").entries(damaged.append))
    if damaged:
        return  # they may need what looks unused
    used = {store.get("prior_stage") for entry in entries for store in dict(entry.plan.arguments.get("stores") or {}).values()}
    drop_stage(*(str(stage) for stage in old if str(stage) not in used))
