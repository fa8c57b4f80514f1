"""Plans a rebuild: what to append to which changelog, and why it is exact or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kops.core.errors import Refused
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.core.times import to_milliseconds
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.operations.offsets.items import committed_json
from kops.operations.services import Services
from kops.operations.state.archived_input import open_archives
from kops.operations.state.completeness import local_state, still_open, uncovered_changelogs, uncovered_note
from kops.operations.state.compute import Computed, compute_stores
from kops.operations.state.cut import Cut, application_group, cut_of_snapshot, find_cut, refuse_alive
from kops.operations.state.engine import Engine, drop_stage, start_engine
from kops.operations.state.evidence import Proof
from kops.operations.state.evidence_commits import Commits, read_commits
from kops.operations.state.evidence_journal import read_past
from kops.operations.state.exactness import MEANINGS, SURE, worst
from kops.operations.state.facts import StoreFacts, read_facts, refuse_timestamps
from kops.operations.state.from_archive import with_shares
from kops.operations.state.from_snapshot import Base, check_base, offsets_of, open_base, refuse_older
from kops.operations.state.guard import guard_of
from kops.operations.state.how import How
from kops.operations.state.places import refuse_unplaced
from kops.operations.state.starts import begins, first_offsets
from kops.operations.state.undrained import answers_waiting, without_waiting
from kops.operations.state.windows import counted, emitted_again, fading
from kops.operations.state.witnesses import question_of, refuse_unwritable, testified

OPERATION = "state.rebuild"
ACTIONS = ("added", "changed", "removed", "erased")
_NAMED = 3


def plan_rebuild(services: Services, state_file: StateFile, how: How) -> Plan:
    """Compute every store, stage what its changelog lacks, and return the plan to append it.

    :param how: with ``at`` the end, or a time, the application is moved there
    :raises Refused: with the reason, when a store must not be rebuilt
    """
    engine = start_engine(services, how.master)
    facts, cut, computed = compute_all(services, state_file, engine, how, must_be_empty=True)
    _refuse_versions(computed)
    now_ms = to_milliseconds(services.now())
    for found in computed:
        for content in found.contents.values():
            refuse_timestamps(found.facts, content.earliest, content.latest, now_ms)
            refuse_time_zero(services, state_file, found.facts.store, content.earliest)
    commits = moved_offsets(engine, state_file, facts, cut)
    uncovered, wipes = uncovered_changelogs(services, state_file), local_state(computed)
    items = [item for found in computed for item in _append_items(found)] + move_items(cut, commits)
    return Plan(
        operation=OPERATION,
        summary=_summary(state_file, computed),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        guard=guard_of(services, state_file.application, _changelogs(computed), watched_topics(facts)),
        arguments={
            "application": state_file.application,
            "state_file": state_file.path,
            "exactly_once": state_file.exactly_once,
            "master": engine.master,
            "backwards": False,
            "archives": cut.archives_json,
            "stores": {found.facts.store.name: _store_arguments(found) for found in computed if not found.facts.store.reuses_source},
            "commit": {str(partition): committed_json(committed) for partition, committed in commits.items()},
            "prior": {str(partition): committed_json(cut.committed.get(partition)) for partition in commits},
            "question": question_of(computed),
            "open": still_open(computed, uncovered, wipes),
        },
        warnings=(*cut.notes, *wipes, *_of_windows(computed, is_moved=bool(commits), now_ms=now_ms)),
        notes=(*cut.origins, *(note for found in computed for note in _notes(found)), *uncovered_note(state_file, uncovered)),
    )


def compute_all(
    services: Services,
    state_file: StateFile,
    engine: Engine,
    how: How,
    *,
    must_be_empty: bool,
    replacing: bool = False,
) -> tuple[list[StoreFacts], Cut, list[Computed]]:
    """Read the facts, refuse what must be, and compute all stores into stages.

    :param must_be_empty: refuse while the application has members
    :param replacing: changelogs may be recreated
    """
    group = application_group(services, state_file, how.at)
    if must_be_empty:
        refuse_alive(group)
    archived = open_archives(engine, state_file, how.archives)
    base = open_base(services, state_file, how.snapshot)
    then = open_base(services, state_file, how.compared)
    facts = read_facts(services, state_file, replacing=replacing or then is not None, archived=archived, since=offsets_of(base))
    if base is not None:
        facts = [
            replace(found, base=base.path(found.store), exactness=worst([found.exactness, base.judged(found.store)])) for found in facts
        ]
    facts, cut = _cut(services, state_file, facts, how, then)
    refuse_older(base, facts, cut)
    since, until = "" if base is None else base.manifest.taken, cut.taken
    starts = begins(facts)
    past = read_past(services, state_file.application, state_file.stores, cut.committed, starts, since=since, until=until)
    commits = Commits() if cut.is_new else read_commits(services, state_file, facts, cut.committed, starts=starts, past=past, until=until)
    facts = [replace(found, exactness=worst([found.exactness, past.judged.get(found.store.name, SURE)])) for found in facts]
    for found in facts:
        if not how.accept_inexact and found.exactness.grade > "B":
            raise _inexact(found.store.name, found.exactness.grade, found.exactness.reasons)
    cut = with_shares(engine, archived, cut, how.at, first_offsets(facts))
    cut = replace(cut, base="" if base is None else base.origin)
    cut = replace(cut, notes=(*cut.notes, *((commits.gap,) if commits.gap else ()), *answers_waiting(services, state_file, cut)))
    facts = [without_waiting(services, engine, state_file, found, cut, skip_undecodable=how.skip_undecodable) for found in facts]
    for used in (base, then):
        check_base(engine, state_file, used)
    computed = compute_stores(
        engine,
        state_file,
        facts,
        cut,
        skip_undecodable=how.skip_undecodable,
        damaged=how.damaged,
        apart=past.apart | commits.apart if how.has_witnesses and not cut.moves else {found.store.name for found in facts},
    )
    computed = [testified(engine, state_file, found, past, commits=commits, cut=cut) for found in computed]
    if must_be_empty:
        _refuse_all(computed, lambda done: refuse_unwritable(done, replacing=replacing))
    for done in computed:
        if not how.accept_inexact and done.exactness.grade > "B":
            for other in computed:
                drop_stage(other.stage)
            raise _inexact(done.facts.store.name, done.exactness.grade, done.exactness.reasons, proof=done.proof)
    if must_be_empty:
        _refuse_all(computed, lambda done: refuse_unplaced([done]))
    return facts, cut, computed


def _cut(services: Services, state_file: StateFile, facts: list[StoreFacts], how: How, then: Base | None) -> tuple[list[StoreFacts], Cut]:
    """Return where the input is cut: now, or as a snapshot has it that stands for the changelogs."""
    if then is None:
        return facts, find_cut(services, state_file, facts, how.at)
    facts = [then.as_changelog(found) for found in facts]
    return facts, replace(cut_of_snapshot(state_file, facts, then.manifest.committed), taken=then.manifest.taken)


def _refuse_all(computed: Sequence[Computed], refuse: Callable[[Computed], None]) -> None:
    try:
        for done in computed:
            refuse(done)
    except Refused:
        for done in computed:
            drop_stage(done.stage)
        raise


def _refuse_versions(computed: Sequence[Computed]) -> None:
    """Refuse to append to the changelog of a versioned store: each of its records is a version, and stays one."""
    for found in computed:
        if found.facts.store.type == VERSIONED and found.differing:
            for done in computed:
                drop_stage(done.stage)
            raise Refused(
                f"store {found.facts.store.name} is versioned and differs in {found.differing:,} versions: its history cannot be unwritten",
                hint="--write replace recreates its changelog",
            )


def refuse_time_zero(services: Services, state_file: StateFile, store: Store, earliest: int) -> None:
    """Refuse a timestamp of 0 where only librdkafka can write: to it, 0 means now."""
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.staging.writer import Target, writes_time_zero

    transactional_id = "" if state_file.exactly_once else None
    target = Target(store.changelog, librdkafka_settings(services.connection), transactional_id)
    if earliest <= 0 and not writes_time_zero(target):
        raise Refused(
            f"store {store.name} has the timestamp 0, which cannot be written in a transaction, or over this connection",
            hint="give the records of the input a time, or rebuild the store by reprocessing",
        )


def _of_windows(computed: Sequence[Computed], *, is_moved: bool, now_ms: int) -> list[str]:
    said = []
    for found in computed:
        store = found.facts.store
        if is_moved:
            said += emitted_again(store)
        if found.must_write and found.contents:
            said += fading(store, found.facts.settings, min(content.earliest for content in found.contents.values()), now_ms)
    return said


def _notes(found: Computed) -> list[str]:
    if found.exactness.reasons or found.proof is None:
        return [found.summary, *found.warnings]
    return [f"{found.facts.store.name}: {found.evidence}", *found.warnings]


def _inexact(store: str, grade: str, reasons: Sequence[str], proof: Proof | None = None) -> Refused:
    damaged = f"if these keys are the damage, pass --damaged {store} or --damaged {store}:PARTITION,...; "
    return Refused(
        f"store {store} would be rebuilt with exactness {grade} ({MEANINGS[grade]}): {'; '.join(reasons)}",
        hint=f"{damaged if proof and proof.differing else ''}pass --accept-inexact to proceed anyway",
        store=store,
        exactness=grade,
        reasons=list(reasons),
    )


def _append_items(found: Computed) -> list[Item]:
    """Return one item a changelog partition. Tombstones that nobody has to see are no reason to write at all."""
    items = []
    for number, bounds in sorted(found.facts.changelog_bounds.items()):
        target, end = f"{found.facts.store.changelog}:{number}", bounds.log_end_offset
        content, actions = found.contents.get(number), found.actions.get(number, {})
        if content is None or not found.must_write:
            reason = "the topic is the changelog itself" if found.facts.store.reuses_source else "up to date"
            items.append(Item(target, "none", end, end, reason))
            continue
        counts = ", ".join(f"{actions[name]:,} {name}" for name in ACTIONS if actions.get(name))
        items.append(Item(target, "append", end, end + content.records, f"{counts} (exactness {found.grade})"))
    return items


def move_items(cut: Cut, commits: Mapping[TopicPartition, Committed]) -> list[Item]:
    """Return the moves of the application as items."""
    items = []
    for partition, committed in sorted(commits.items()):
        before = cut.committed.get(partition)
        action = "move" if before else "commit"
        items.append(Item(str(partition), action, before.offset if before else None, committed.offset, "the application resumes here"))
    return items


def moved_offsets(engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], cut: Cut) -> dict[TopicPartition, Committed]:
    """Return what to commit for the application, with the partition time that Kafka Streams would have stored."""
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.jobs import partition_times

    commits = {}
    for topic in sorted({partition.topic for partition in cut.moves}):
        found = next(found for found in facts if any(source.topic == topic for source in found.store.inputs))
        ranges = {p: bounds for p, bounds in cut.ranges(found, topic).items() if TopicPartition(topic, p) in cut.moves}
        store = replace(found.store, source=next(source for source in found.store.inputs if source.topic == topic))
        read = TopicRange(topic, ranges, read_committed=state_file.reads_committed)
        times = partition_times(engine.kafka(), read, state_file, store)
        for number in ranges:
            partition = TopicPartition(topic, number)
            metadata = offset_metadata.encode(OffsetMetadata(times[number])) if number in times else ""
            commits[partition] = Committed(cut.offsets[partition], metadata)
    return commits


def _store_arguments(found: Computed) -> dict[str, Any]:
    return {
        "changelog": found.facts.store.changelog,
        "stage": found.stage,
        "exactness": found.judgement,
        "read": found.counts.read,
        "keys": found.counts.keys,
        "dropped": found.counts.dropped,
        **counted(found.counts.noted),
        "actions": {str(number): dict(actions) for number, actions in found.actions.items()},
        "contents": {str(number): asdict(content) for number, content in found.contents.items()} if found.must_write else {},
    }


def _changelogs(computed: Sequence[Computed]) -> list[str]:
    """Return the changelogs that may be written; a topic that is its table's changelog is none: its producers go on."""
    return [found.facts.store.changelog for found in computed if not found.facts.store.reuses_source]


def watched_topics(facts: Sequence[StoreFacts]) -> list[str]:
    """Return the topics whose committed offsets must not move."""
    stores = [found.store for found in facts]
    return sorted(
        {source.topic for store in stores for source in store.inputs}
        | {store.repartition_topic for store in stores if store.repartition_topic}
    )


def _summary(state_file: StateFile, computed: Sequence[Computed]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = [f"{found.facts.store.name} {found.counts.keys:,} keys, exactness {found.grade}" for found in computed[:_NAMED]]
    more = f"; and {len(computed) - _NAMED} more stores" if len(computed) > _NAMED else ""
    what = f"({'; '.join(stores)}{more})"
    if not records:
        return f"the state of {state_file.application} {what} is up to date"
    return f"rebuild the state of {state_file.application} {what}: append {records:,} records"
