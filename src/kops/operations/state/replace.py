"""Plans to recreate changelogs: delete them, create them with the settings that they had, and write them whole.

This is for what appending cannot repair: a versioned store, whose history cannot be unwritten, a wrong number of partitions, and a
changelog that does not exist. Before a topic is deleted, its settings are in the journal, and both its old and its new contents are
staged: so a replacement that was killed at any point is finished from the journal, or by the same command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.findings import counted
from kops.core.models import NewTopic, Topic
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile
from kops.core.statefile.models import SESSION, SLIDING, VERSIONED, WINDOW, Store
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topics import ADDED_MS
from kops.core.times import to_milliseconds
from kops.core.topics.settings import as_new
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, drop_stage, new_stage
from kops.operations.protocol.journal import Journal
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.services import Services
from kops.operations.state.arguments import Contents, StateArguments, StoreWrite, arguments_of
from kops.operations.state.change import REPLACE
from kops.operations.state.changelog_writes import refuse_times
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import ComputedStore, changelog_range
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.internal_topics import TopicChange, refuse_unless_recreatable, topic_ids
from kops.operations.state.plans import plan_computed

if TYPE_CHECKING:
    from kops.spark.staging.stage import StagedPartitions


@dataclass(frozen=True)
class Replacement:
    """A changelog to be recreated.

    :param stage: what it is to hold; ``prior_stage``: what it holds
    """

    found: ComputedStore
    change: TopicChange
    stage: str
    staged: StagedPartitions
    prior_stage: str
    prior_contents: Contents
    with_headers: int

    @property
    def write(self) -> StoreWrite:
        return StoreWrite(
            changelog=self.found.facts.store.changelog,
            stage=self.stage,
            contents=held_json(self.staged.contents),
            in_order=self.found.facts.store.type == VERSIONED,
            staged_headers=self.found.counts.headers,
            prior_stage=self.prior_stage,
            prior_contents=self.prior_contents,
            facts=self.found.reported,
        )

    def items(self) -> list[Item]:
        topic = self.found.facts.store.changelog
        reason = "deleted and recreated with its settings" if self.change.before else "created: it does not exist"
        return [
            self.change.item("made by an earlier attempt, which stopped while it wrote" if self.change.done else reason),
            *(
                Item(f"{topic}:{number}", "append", 0, content.records, f"{counted(content.records, 'record')} ({self.found.word})")
                for number, content in sorted(self.staged.contents.items())
            ),
        ]


def plan_replace(services: Services, state_file: StateFile, options: ComputeOptions) -> Plan[StateArguments]:
    """Compute every store, and return the plan that recreates those changelogs that are wrong.

    :raises Refused: as ``plan_rebuild``, except for what recreating fixes
    """
    engine = options.recipe.engine(services, options.master)
    done = compute_all(services, state_file, engine, options, must_be_empty=True, replacing=True)
    cut, computed = done.cut, done.computed
    wrong = [found for found in computed if found.differing or found.counts.unrestorable or not found.facts.fits]
    replaced: list[Replacement] = []
    wholes: dict[str, ComputedStore] = {}
    try:
        changes = {found.facts.store.name: _change(services, found) for found in wrong}
        _refuse_headers(wrong, {name: change for name, (change, _) in changes.items()})
        wholes = {whole.facts.store.name: whole for whole in options.recipe.records(engine, state_file, wrong, cut)}
        for found in wrong:
            name = found.facts.store.name
            replaced.append(_replacement(engine, state_file, found, wholes[name], changes[name]))
            _refuse(services, state_file, replaced[-1])
    except BaseException:
        drop_stage(*(each.stage for each in wholes.values()))
        for each in replaced:
            drop_stage(each.stage)
            if each.change.topic_id is not None and not each.change.done:  # otherwise an earlier attempt staged it, and owns it
                drop_stage(each.prior_stage)
        raise
    finally:
        drop_stage(*(found.stage for found in computed))
    right = [
        Item(found.facts.store.changelog, "none", reason=f"up to date: {counted(found.counts.keys, 'key')}")
        for found in computed
        if found not in wrong
    ]
    names = [each.change.name for each in replaced]
    wipes = [delete_local_state(state_file.application)] if replaced else []
    return plan_computed(
        engine,
        REPLACE,
        state_file,
        done,
        stores={each.found.facts.store.name: each.write for each in replaced},
        items=[*(item for each in replaced for item in each.items()), *right],
        topics=[each.change for each in replaced],
        summary=_summary(state_file, replaced),
        warnings=(*_headers(replaced), *_more_partitions(state_file, replaced, cut), *wipes),
        wipes=wipes,
        notes=[note for found in computed for note in found.explained],
        confirm=(names[0] if len(names) == 1 else state_file.application) if replaced else "",
    )


def _replacement(
    engine: Engine, state_file: StateFile, found: ComputedStore, whole: ComputedStore, changed: tuple[TopicChange, _Unfinished | None]
) -> Replacement:
    """Stage a changelog's old contents.

    :param whole: its new ones
    :param changed: what ``_change`` says of it
    """
    facts, (change, earlier) = found.facts, changed
    prior_stage, with_headers = "", 0
    prior_contents: Contents = {}
    if earlier is not None:
        prior_stage, prior_contents = earlier.write.prior_stage, earlier.write.prior_contents
    elif change.before:
        prior_stage, prior_contents, with_headers = _prior(engine, state_file, facts)
    return Replacement(found, change, whole.stage, whole.counts.staged, prior_stage, prior_contents, with_headers)


def _prior(engine: Engine, state_file: StateFile, facts: StoreFacts) -> tuple[str, Contents, int]:
    """Stage what a changelog holds, and count its records with headers, which a stage does not keep."""
    from kops.spark.driver.failures import explained
    from kops.spark.stores.versioned import stage_held

    path, changelog = new_stage(engine.services, state_file.application), replace(changelog_range(state_file, facts), headers=True)
    engine.services.progress.step(f"keeping {counted(changelog.records, 'record')} of {changelog.topic}")
    with explained(f"read {changelog.topic}"), engine.reading(changelog):
        staged, with_headers = stage_held(engine.kafka(), changelog, facts.store.history_ms, path)
    return path, held_json(staged.contents), with_headers


@dataclass(frozen=True)
class _Unfinished:
    """A journal entry's record of a changelog that it deleted and did not write completely.

    :param change: the topic before, and as it was to be
    :param write: what was written to it, and what it held before
    """

    change: TopicChange
    write: StoreWrite


def _unfinished_change(services: Services, changelog: str) -> _Unfinished | None:
    """Return what the newest replacement on this cluster recorded about a changelog, if it stopped after deleting it."""
    cluster_id = services.kafka.cluster().cluster_id
    journal = Journal(services.directories.state / "journal")
    for entry in journal.entries(lambda _: None, mentioning=changelog):
        plan = entry.plan
        if plan.operation == REPLACE and plan.cluster_id == cluster_id and is_unfinished(entry):
            for change in arguments_of(plan).topics:
                if change.after and change.name == changelog:
                    known = (store for store in arguments_of(plan).stores.values() if store.changelog == changelog)
                    return _Unfinished(change, next(known, StoreWrite(changelog, "")))
    return None


def _change(services: Services, computed: ComputedStore) -> tuple[TopicChange, _Unfinished | None]:
    """Return the changelog as it is and as it will be, which differ in the number of partitions only.

    :returns: also the earlier attempt that deleted or created it, if any; then its settings and staged contents count
    """
    facts, name = computed.facts, computed.facts.store.changelog
    there = services.kafka.topics.existing([name]).get(name)
    earlier = _unfinished_change(services, name)
    if there is not None:
        if earlier is not None and _lacks_only_the_rest(computed, there, earlier.change):
            return replace(earlier.change, topic_id=there.topic_id, done=True), earlier
        before = as_new(there, services.kafka.topics.settings([name])[name])
        found = TopicChange(before, replace(before, partitions=facts.partitions), topic_ids(services, [TopicChange(before, before)])[name])
        refuse_unless_recreatable(services, [found])
        return found, None
    if earlier is not None and earlier.change.after is not None:
        known = earlier.change.after
        return TopicChange(earlier.change.before, replace(known, partitions=max(known.partitions or 0, facts.partitions))), earlier
    return TopicChange(None, NewTopic(name, facts.partitions, None, streams_settings(facts.store))), None


def _lacks_only_the_rest(computed: ComputedStore, there: Topic, change: TopicChange) -> bool:
    """Whether an earlier attempt made a changelog and wrote a part of it, which lacks nothing but the rest."""
    if change.after is None or there.topic_id in (None, change.topic_id):
        return False
    fits = len(there.partitions) == change.after.partitions == computed.facts.partitions
    return fits and not any(count for actions in computed.actions.values() for name, count in actions.items() if name != "added")


def streams_settings(store: Store) -> dict[str, str]:
    """Return what Kafka Streams sets for a new changelog (``InternalTopicConfig`` and its subclasses)."""
    if store.changelog_settings is not None:
        return dict(store.changelog_settings)
    settings = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    if store.type == VERSIONED and store.history_ms is not None:
        return settings | {"min.compaction.lag.ms": str(store.history_ms + ADDED_MS)}
    if store.type in (WINDOW, SLIDING, SESSION) and store.window is not None:
        return settings | {"cleanup.policy": "compact,delete", "retention.ms": str(store.window.retention_ms + ADDED_MS)}
    return settings


def _refuse(services: Services, state_file: StateFile, done: Replacement) -> None:
    facts = done.found.facts
    settings = {**facts.settings, **(done.change.after.settings if done.change.after else {})}
    contents = done.staged.contents.values()
    now_ms = to_milliseconds(services.now())
    refuse_times(services, replace(facts, settings=settings), contents, now_ms, exactly_once=state_file.exactly_once)


def _refuse_headers(wrong: Sequence[ComputedStore], changes: Mapping[str, TopicChange]) -> None:
    """Refuse a changelog whose records have headers that are state: it would be kept without them. One that was gone held nothing."""
    for found in wrong:
        if found.counts.headers and changes[found.facts.store.name].before is not None:
            raise Refused(
                f"store {found.facts.store.name}: records of {found.facts.store.changelog} have headers, and could not be undone with them",
                hint="--write append keeps headers",
            )


def _headers(replaced: Sequence[Replacement]) -> list[str]:
    return [
        f"{done.with_headers:,} records of {done.found.facts.store.changelog} have headers; undo writes them back without"
        for done in replaced
        if done.with_headers
    ]


def _more_partitions(state_file: StateFile, replaced: Sequence[Replacement], cut: InputOffsets) -> list[str]:
    """Warn where a changelog that does not exist may need more partitions: as many as the greatest topic of its sub-topology has."""
    sizes: dict[str, int] = {}
    for place in cut.committed:
        sizes[place.topic] = max(sizes.get(place.topic, 0), place.partition + 1)
    warnings = []
    for done in replaced:
        count = done.change.after.partitions if done.change.after and not (done.change.before or done.change.done) else None
        greater = {topic: size for topic, size in sorted(sizes.items()) if count is not None and size > count}
        if greater:
            others = ", ".join(f"{topic} ({size})" for topic, size in greater.items())
            warnings.append(
                f"{done.found.facts.store.changelog} is not there and is created with {count} partitions; {state_file.application} also"
                f" reads {others}: if that is of the same sub-topology, Kafka Streams expects as many and refuses to start; `kops topics"
                " create` makes it so first"
            )
    return warnings


def _summary(state_file: StateFile, replaced: Sequence[Replacement]) -> str:
    if not replaced:
        return f"the state of {state_file.application} is up to date"
    names = ", ".join(done.found.facts.store.changelog for done in replaced)
    records = sum(content.records for done in replaced for content in done.staged.contents.values())
    return f"delete and recreate {names}, with {counted(records, 'record')}"
