"""What stores should hold, whole: the computation of a rebuild, compared with nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kops.core.models import Bounds
from kops.core.records.models import Record
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.operations.services import Services
from kops.operations.state.compute import Computed, compute_stores
from kops.operations.state.cut import Cut
from kops.operations.state.engine import Engine, drop_stage, start_engine
from kops.operations.state.evidence_commits import Commits, read_commits
from kops.operations.state.evidence_journal import read_past
from kops.operations.state.exactness import SURE, worst
from kops.operations.state.facts import StoreFacts, read_facts
from kops.operations.state.query_keys import version_of
from kops.operations.state.starts import begins
from kops.operations.state.witnesses import testified

NO_OFFSET = -1
"""The offset of a record that lies in no log."""


@dataclass(frozen=True)
class Views:
    """Computed stores; the stage of each has all of its keys.

    :param cut: up to where the input counted
    """

    engine: Engine
    cut: Cut
    computed: list[Computed]

    def records(self, found: Computed) -> Iterator[Record]:
        """Yield the live keys of a store, in no order."""
        from kops.spark.staging.difference import to_append
        from kops.spark.staging.stage import read_stage

        topic = found.facts.store.changelog
        rows = to_append(read_stage(self.engine.session, found.stage)).where("value is not null").toLocalIterator(prefetchPartitions=True)
        of_store = version_of if found.facts.store.type == VERSIONED else _as_it_is
        for row in rows:
            key, value = of_store(bytes(row.key), bytes(row.value))
            yield Record(topic, row.partition, NO_OFFSET, row.timestamp, key, value)


def _as_it_is(key: bytes, value: bytes) -> tuple[bytes, bytes | None]:
    return key, value


def emptied(facts: StoreFacts) -> StoreFacts:
    """Return a store's facts as if its changelog had no records, so that all of it differs."""
    nothing = {number: Bounds(0, 0) for number in facts.changelog_bounds}
    return replace(facts, changelog_bounds=nothing, before=facts.changelog_bounds)


@contextmanager
def computed_views(
    services: Services,
    state_file: StateFile,
    cut_of: Callable[[list[StoreFacts]], Cut],
    *,
    skip_undecodable: bool = False,
    master: str | None = None,
) -> Iterator[Views]:
    """Compute all stores, judged by what was done to the application, and forget them at the end."""
    engine = start_engine(services, master)
    facts = read_facts(services, state_file)
    cut = cut_of(facts)
    starts = begins(facts)
    past = read_past(services, state_file.application, state_file.stores, cut.committed, starts)
    commits = Commits() if cut.is_new else read_commits(services, state_file, facts, cut.committed, starts=starts, past=past)
    facts = [replace(found, exactness=worst([found.exactness, past.judged.get(found.store.name, SURE)])) for found in facts]
    computed = compute_stores(engine, state_file, [emptied(found) for found in facts], cut, skip_undecodable=skip_undecodable)
    try:
        yield Views(engine, cut, [testified(engine, state_file, found, past, commits=commits, cut=cut) for found in computed])
    finally:
        for found in computed:
            drop_stage(found.stage)
