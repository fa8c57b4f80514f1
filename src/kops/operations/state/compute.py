"""Computes stores and stages the differences from their changelogs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from kops.core.errors import ExitCode
from kops.core.findings import Finding, Severity, names_text
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.streams.verdict import DOUBTFUL, IMPOSSIBLE, Verdict, doubt
from kops.operations.engine.spark import Engine, drop_stage, new_stage
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, amount_text
from kops.operations.state.rules.past import PastDifference, PastProof
from kops.operations.state.rules.table import TableRun
from kops.operations.state.rules.windows import added_retention
from kops.operations.state.rules.witnesses import Witnesses, witnesses_of
from kops.operations.state.schemas import with_schemas

if TYPE_CHECKING:
    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.snapshot import Content
    from kops.spark.reading.source import KafkaSource
    from kops.spark.stores.jobs import Counts

_AT_A_TIME = 4
_ADJECTIVES = {Severity.CRITICAL: f"{IMPOSSIBLE}: ", Severity.WARNING: f"{DOUBTFUL}: ", Severity.NOTE: ""}
_NAMED = 3
UNDECODABLE = "restored_undecodable"
"""The name by which it is noted how many keys of a table are restored from its topic with bytes that cannot be decoded."""

_UNJUDGED = Verdict()


class Run(Protocol):
    """How a store was computed."""

    def findings(self) -> Iterable[Finding]:
        """Return the findings of the computation."""


@dataclass(frozen=True)
class ComputedStore:
    """A store that was computed.

    :param stage: path of its differences
    :param counts: what was counted while computing, and how much is staged
    :param witnesses: the keys of its changelog that survived; None where its topic is its changelog
    :param run: what computing showed
    :param verdict: what is known of its keys, once it was judged
    :param proven: the last ``verify`` that proved it with the same state file
    :param contradicted: the last ``verify``, if it found surviving keys different with the same state file, and nothing settles that now
    :param heap: the most that the heap of a JVM with the application's own program could be, which computed it; 0: none did
    :param on_disk: in how many of its tasks it outgrew the memory of such a JVM
    """

    facts: StoreFacts
    stage: str
    counts: Counts
    run: Run
    witnesses: Witnesses | None = None
    verdict: Verdict = _UNJUDGED
    proven: PastProof | None = None
    contradicted: PastDifference | None = None
    heap: int = 0
    on_disk: int = 0

    @property
    def word(self) -> str:
        return self.verdict.word

    @property
    def judgement(self) -> dict[str, Any]:
        witnesses = self.witnesses.as_json() if self.witnesses else None
        return {**self.verdict.as_json(), "witnesses": witnesses, "last_proven": asdict(self.proven) if self.proven else None}

    @property
    def reported(self) -> dict[str, Any]:
        """Its part of a plan's report, as JSON."""
        counts = self.counts
        return {**self.judgement, "read": counts.read, "keys": counts.keys, "dropped": counts.dropped}

    @property
    def actions(self) -> Mapping[int, Mapping[str, int]]:
        """How many keys are added, changed, removed, by partition."""
        return self.counts.staged.actions

    @property
    def contents(self) -> Mapping[int, Content]:
        return self.counts.staged.contents

    @property
    def differing(self) -> int:
        """How many keys of the compacted view differ."""
        return sum(count for found in self.actions.values() for name, count in found.items() if name != "erased")

    @property
    def outcome(self) -> ExitCode:
        """Exit code of comparing it: the changelog is right, differs from the expected state, or the expected state is not known."""
        if self.counts.unrestorable or self.counts.noted.get(UNDECODABLE):
            return ExitCode.FAILED
        if self.differing:
            return ExitCode.FAILED if self.verdict.is_clear else ExitCode.UNCLEAR
        nothing_to_compare = self.witnesses is not None and not self.counts.keys and self.changelog_is_empty
        return ExitCode.UNCLEAR if self.verdict.beyond or nothing_to_compare else ExitCode.DONE

    @property
    def must_write(self) -> bool:
        """Whether there is anything to append.

        Tombstones that no local store needs are not a reason, unless a partition is empty: then local stores may hold keys that it lost.
        """
        return bool(self.differing) or any(
            bound.empty and self.actions.get(number, {}).get("erased", 0) for number, bound in self.facts.changelog_bounds.items()
        )

    @property
    def changelog_is_empty(self) -> bool:
        return all(bound.empty for bound in self.facts.changelog_bounds.values())

    @property
    def summary(self) -> str:
        store = self.facts.store
        topics = " and ".join(source.topic for source in store.inputs)
        if store.reuses_source:
            return (
                f"{store.name}: {self.counts.keys:,} keys; {topics} itself is its changelog (topology.optimization), from which"
                " the application restores up to its committed offset: there is nothing to write"
            )
        what = "versions" if store.type == VERSIONED else "keys"
        return f"{store.name}: {self.counts.keys:,} {what} from {self.counts.read:,} records of {topics}: {self.verdict.text}"

    @property
    def explained(self) -> list[str]:
        """The summary, the reasons of its verdict, and its doubtful keys, one sentence each."""
        name = self.facts.store.name
        reasons = [f"{name}: {_ADJECTIVES[each.severity]}{each.summary}" for each in self.verdict.reasons]
        keys = [f"{name}: doubtful keys: {'; '.join(self.verdict.keys)}; `kops state diff` shows all"] if self.verdict.keys else []
        return [self.summary, *reasons, *keys]


def unrestorable_text(found: ComputedStore) -> str:
    topic = found.facts.store.changelog
    return (
        f"{found.counts.unrestorable:,} records of {topic} have keys too short for such a store: Kafka Streams ends when it restores them"
    )


def compute_stores(
    engine: Engine,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    skip_undecodable: bool,
) -> list[ComputedStore]:
    """Compute stores, several at a time, and stage what their changelogs lack.

    An application with many small stores waits for Spark's planning more than for its tasks. The first error, or Ctrl-C, ends
    all jobs, and leaves no stage behind.
    """
    jobs = [job_of(state_file, found, cut, skip_undecodable=skip_undecodable) for found in facts]
    names = names_text((job.store.name for job in jobs), _NAMED, of="stores")
    sources = [engine.in_kafka(source) for job in jobs for source in job.sources]
    older = sum(source.records for job in jobs for source in job.sources) - sum(source.records for source in sources)
    amount = amount_text(engine.services, sources, [job.changelog for job in jobs])
    engine.services.progress.step(f"computing {names} from {amount}" + (f", after up to {older:,} records of archives" if older else ""))
    stages = [new_stage(engine.services, state_file.application) for _ in jobs]
    kafka = engine.kafka()
    jobs = with_schemas(engine.services, kafka, jobs)
    pool = ThreadPoolExecutor(_AT_A_TIME, "kops-store")
    try:
        with engine.reading(*(source for job in jobs for source in job.sources), *(job.changelog for job in jobs)):
            added_ms = added_retention((found.store, found.settings) for found in facts)
            running = [
                pool.submit(_compute, kafka, found, job, stage, added_ms) for found, job, stage in zip(facts, jobs, stages, strict=True)
            ]
            return [future.result() for future in running]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        engine.cancel_jobs()
        pool.shutdown()
        drop_stage(*stages)
        raise
    finally:
        pool.shutdown()


def job_of(state_file: StateFile, facts: StoreFacts, cut: InputOffsets, *, skip_undecodable: bool) -> Job:
    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange

    store = facts.store
    source, *others = (
        TopicRange(
            found.topic,
            cut.ranges(facts, found.topic),
            read_committed=state_file.reads_committed,
            begins=facts.starts_of(found.topic),
            headers=found.needs_headers,
            without=facts.waiting_of(found.topic),
        )
        for found in store.inputs
    )
    return Job(
        state_file=state_file,
        store=store,
        source=source,
        others=tuple(others),
        loose=facts.loose,
        changelog=changelog_range(state_file, facts),
        places=changelog_range(state_file, replace(facts, changelog_bounds=facts.before)) if facts.before is not None else None,
        partitions=facts.tasks,
        base=facts.base,
        held=facts.held,
        skip_undecodable=skip_undecodable,
    )


def _compute(kafka: KafkaSource, facts: StoreFacts, job: Job, stage: str, added_ms: int) -> ComputedStore:
    from kops.spark.driver.failures import explained
    from kops.spark.stores.jobs import count_table, stage_difference

    store, seen = facts.store, tuple[Finding, ...]()
    with explained(f"compute {store.name}"):
        counts = count_table(kafka, job) if store.reuses_source and not facts.is_bare else stage_difference(kafka, job, stage)
        if store.reuses_source and counts.dropped.get("undecodable"):
            counts, seen = _undecodable(kafka, job, counts)
    return computed_store(facts, stage, counts, TableRun(job.state_file, store, counts, facts.settings, added_ms, seen))


def computed_store(facts: StoreFacts, stage: str, counts: Counts, run: Run, *, heap: int = 0, on_disk: int = 0) -> ComputedStore:
    """Return a store that was computed, with the keys of its changelog that survived, not judged yet."""
    witnesses = None
    if not facts.store.reuses_source:
        actions, damaged = counts.staged.actions, facts.damaged
        witnesses = witnesses_of(
            live=counts.live, expected=counts.keys, actions=actions, damaged=damaged, whole=facts.whole, lossy=facts.lossy
        )
    return ComputedStore(facts, stage, counts, run, witnesses, heap=heap, on_disk=on_disk)


def _undecodable(kafka: KafkaSource, job: Job, counts: Counts) -> tuple[Counts, tuple[Finding, ...]]:
    """Judge a table that is restored from its topic by the keys whose newest record cannot be decoded."""
    from kops.spark.stores.jobs import undecodable_when_restored

    count, first = undecodable_when_restored(kafka, job, _NAMED)
    if not count:
        return counts, ()
    topic = job.store.source.topic
    places = names_text((f"{topic}:{number} offset {offset}" for number, offset in first), _NAMED)
    more = f" and {count - len(first):,} more" if count > len(first) else ""
    why = f"the newest records of {count:,} keys cannot be decoded ({places}{more}): an application that restores the table from {topic}"
    fails = (
        f"{why} holds their bytes, and fails when it reads them (KAFKA-8037), until a record that can be decoded, or a tombstone, follows"
    )
    return replace(counts, noted={**counts.noted, UNDECODABLE: count}), (doubt("undecodable_keys", fails, subject=topic),)


def changelog_range(state_file: StateFile, facts: StoreFacts) -> TopicRange:
    """Return the whole range of a store's changelog, as the application would restore it."""
    from kops.spark.reading.ranges import TopicRange

    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.changelog_bounds.items()}
    return TopicRange(facts.store.changelog, ranges, read_committed=state_file.exactly_once)


UNKNOWN = -1
"""As in ``kops.spark.stores.partitions``."""
