"""Computes stores and what their changelogs lack, into a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.statefile import StateFile
from kops.operations.state.cut import Cut
from kops.operations.state.engine import Engine
from kops.operations.state.exactness import Exactness, of_order, worst
from kops.operations.state.facts import StoreFacts

if TYPE_CHECKING:
    from kops.spark.jobs import Counts
    from kops.spark.source import TopicRange
    from kops.spark.stage import Staged

DROPPED = {
    "undecodable": "could not be decoded",
    "negative_timestamp": "have a negative timestamp",
    "filtered": "do not pass `where`",
    "null_key": "have a null key",
    "null_value": "have a null value",
}


@dataclass(frozen=True)
class Computed:
    """A store that was computed.

    :param stage: where its differences are
    :param staged: and how many
    """

    facts: StoreFacts
    stage: str
    counts: Counts
    staged: Staged
    exactness: Exactness

    @property
    def actions(self) -> Mapping[int, Mapping[str, int]]:
        """Return how many keys are added, changed, removed, by partition."""
        return self.staged.actions

    @property
    def differing(self) -> int:
        """Return how many keys of the compacted view differ."""
        return sum(count for found in self.actions.values() for name, count in found.items() if name != "erased")

    @property
    def must_write(self) -> bool:
        """Tell whether there is anything to append.

        Tombstones that nobody has to see are no reason, unless the log is empty: then local stores may remember what it forgot.
        """
        erased = sum(found.get("erased", 0) for found in self.actions.values())
        return bool(self.differing or (erased and self.changelog_is_empty))

    @property
    def changelog_is_empty(self) -> bool:
        """Tell whether the changelog has no records at all."""
        return all(bound.log_start_offset == bound.log_end_offset for bound in self.facts.changelog_bounds.values())

    @property
    def summary(self) -> str:
        """Return what was computed, and how exact it is, in one line."""
        store = self.facts.store
        return f"{store.name}: {self.counts.keys:,} keys from {self.counts.read:,} records of {store.source.topic}; {self.exactness.text}"

    @property
    def warnings(self) -> list[str]:
        """Return what should be known of the records, a sentence each."""
        dropped = [f"{count:,} {DROPPED[name]}" for name, count in self.counts.dropped.items() if count]
        text = f"{self.facts.store.name}: of the records, {', '.join(dropped)}; they do not count, as in Kafka Streams"
        return [text] if dropped else []


def compute(engine: Engine, state_file: StateFile, facts: StoreFacts, cut: Cut, stage: str, *, skip_undecodable: bool) -> Computed:
    """Compute a store and stage what its changelog lacks."""
    from kops.spark.failures import explained
    from kops.spark.jobs import Job, stage_difference
    from kops.spark.source import TopicRange
    from kops.spark.stage import describe_stage

    store = facts.store
    job = Job(
        state_file=state_file,
        store=store,
        source=TopicRange(store.source.topic, cut.ranges(facts), read_committed=state_file.exactly_once),
        changelog=changelog_range(state_file, facts),
        partitions=facts.partitions,
        skip_undecodable=skip_undecodable,
    )
    engine.services.progress.step(f"computing {store.name} from {store.source.topic} ({job.source.records:,} records)")
    kafka = engine.kafka()
    with explained(f"compute {store.name}"), engine.reading(job.source, job.changelog):
        counts = stage_difference(kafka, job, stage)
        staged = describe_stage(engine.session, stage)
    exactness = worst([facts.exactness, of_order(counts.keys, counts.mixed)])
    return Computed(facts, stage, counts, staged, exactness)


def changelog_range(state_file: StateFile, facts: StoreFacts) -> TopicRange:
    """Return all of a store's changelog, as the application would restore it."""
    from kops.spark.source import TopicRange

    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.changelog_bounds.items()}
    return TopicRange(facts.store.changelog, ranges, read_committed=state_file.exactly_once)
