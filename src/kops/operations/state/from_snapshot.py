"""A snapshot as the start of a computation, so that only the rest is computed; or as what the result is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kops.core.errors import ConfigError, Refused, UsageProblem
from kops.core.findings import Finding, counted
from kops.core.models import Bounds, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import KEY_VALUE, PLAIN
from kops.core.streams.verdict import doubt
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.rules.witnesses import partitions_text
from kops.operations.state.snapshot import Manifest, SnapshotStore, read_manifest, store_folder, whole_view

_TAKES = (KEY_VALUE, PLAIN)


@dataclass(frozen=True)
class BaseSnapshot:
    """A snapshot that a computation starts from.

    :param folder: of the snapshot
    """

    folder: Path
    manifest: Manifest

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        return {place: found.offset for place, found in self.manifest.committed.items()}

    @property
    def origin(self) -> str:
        """What comes from the snapshot, in words."""
        return f"the state of {self.manifest.taken} comes from {self.folder}, and only what was read since is computed"

    def of_changelog(self, name: str) -> SnapshotStore:
        """Return the store of a changelog as the snapshot has it.

        :raises UsageProblem: when the snapshot has no such changelog
        """
        for found in self.manifest.stores:
            if found.topic.name == name:
                return found
        raise UsageProblem(
            f"{self.folder} has no store of the changelog {name}",
            hint=f"it has {', '.join(found.name for found in self.manifest.stores)}; --store names those to compute",
        )

    def findings(self, store: Store) -> list[Finding]:
        found = self.of_changelog(store.changelog)
        if not found.emptied:
            return []
        lost = f"{partitions_text(found.emptied)} of {found.topic.name} had lost every record"
        said = f"when the snapshot {self.folder} was taken, {lost}: what was there before is not in it"
        return [doubt("lossy_snapshot", said)]

    def as_changelog(self, facts: StoreFacts) -> StoreFacts:
        """Return the facts of a store as they were when the snapshot was taken, with the snapshot in place of the changelog."""
        found = self.of_changelog(facts.store.changelog)
        return replace(
            facts,
            changelog_bounds={number: Bounds(start, end) for number, (start, end) in found.cut.items()},
            settings=dict(found.topic.settings or {}),
            output_bounds={},
            held=self.path(facts.store),
        )

    def path(self, store: Store) -> str:
        return str(store_folder(self.folder, self.of_changelog(store.changelog)))


def open_base(services: Services, state_file: StateFile, path: str | None, *, restores: bool = False) -> BaseSnapshot | None:
    """Return a snapshot after checking that it is of this application and of its input as it is now.

    :param path: None: the computation starts from nothing
    :param restores: the program's own tasks start from it as from their changelogs; whether they can is to be seen
    :raises ConfigError: when there is none at the path
    :raises UsageProblem: when it is of something else
    :raises Refused: when a store cannot start from a snapshot
    """
    if path is None:
        return None
    base = BaseSnapshot(Path(path).absolute(), read_manifest(Path(path)))
    manifest = base.manifest
    cluster_id = services.kafka.cluster().cluster_id
    for what, theirs, ours in (
        ("application", manifest.application, state_file.application),
        ("cluster", manifest.cluster_id, cluster_id),
        ("guarantee", manifest.guarantee, state_file.guarantee),
    ):
        if theirs != ours:
            raise UsageProblem(
                f"{path} is a snapshot of the {what} {theirs}, and this is {ours}", hint="`kops state restore` takes it elsewhere"
            )
    for store in state_file.stores:
        if not restores:
            _refuse_kind(store)
        base.of_changelog(store.changelog)
    _refuse_moved(services, state_file, base)
    return base


def _refuse_kind(store: Store) -> None:
    what = None
    if store.window is not None:
        what = "has windows, whose stream time no snapshot has"
    elif store.type not in _TAKES or store.table is not None:
        what = "is made of tables or versions, of which a snapshot has not all that they come from"
    elif store.reuses_source:
        what = "is restored from its topic, and needs no snapshot"
    if what:
        raise Refused(
            f"store {store.name} {what}: it can neither start from one nor be compared with one",
            hint="--store names the stores that can; `kops state restore` brings all back",
        )


def _refuse_moved(services: Services, state_file: StateFile, base: BaseSnapshot) -> None:
    """Refuse a snapshot from before a topic's number of partitions changed: keys are in other partitions now."""
    manifest = base.manifest
    topics = {source.topic: manifest.inputs.get(source.topic) for store in state_file.stores for source in store.inputs}
    topics |= {topic.name: topic.partitions for topic in manifest.repartitions}
    topics |= {store.topic.name: store.topic.partitions for store in manifest.stores}
    needed = {store.changelog for store in state_file.stores} | {store.repartition_topic for store in state_file.stores}
    needed |= {source.topic for store in state_file.stores for source in store.inputs}
    for name, topic in services.kafka.topics.existing([name for name in topics if name in needed]).items():
        if topics[name] not in (None, len(topic.partitions)):
            raise UsageProblem(
                f"{base.folder} is of {name} with {topics[name]} partitions, and it has {len(topic.partitions)}: keys may have moved",
                hint="take another snapshot, or compute from the whole input",
            )
        if manifest.input_ids.get(name, topic.topic_id) != topic.topic_id:
            raise UsageProblem(
                f"{base.folder} is of {name} as it was before it was deleted and recreated: its offsets no longer match",
                hint="take another snapshot, or compute from the whole input",
            )


def refuse_older(base: BaseSnapshot, facts: Sequence[StoreFacts], cut: InputOffsets) -> None:
    """Refuse a snapshot that has more of the input than counts."""
    for place in sorted({place for found in facts for place in found.input_bounds}):
        if base.offsets.get(place, 0) > cut.offsets[place]:
            raise Refused(
                f"{base.folder} has {place} up to offset {base.offsets[place]}, and only what lies before {cut.offsets[place]} counts",
                hint="use an older snapshot; a state cannot go back from a later one",
            )


def check_base(engine: Engine, state_file: StateFile, base: BaseSnapshot) -> None:
    """Read what is used of a snapshot, and compare it with what was written.

    :raises ConfigError: when files are not what was written, or not in the formats of the state file
    """
    from kops.spark.driver.failures import explained
    from kops.spark.stores.base import wrong_in_base

    for store in state_file.stores:
        check_copy(engine, base, store.changelog)
        path = base.path(store)
        with explained(f"read the snapshot of {store.name}"):
            wrong = wrong_in_base(engine.session, store, path)
        if wrong:
            raise ConfigError(
                f"{state_file.path}: {wrong:,} values of {store.name} in {base.folder} are not {store.aggregate.form}",
                hint=f"see stores.{store.name}.aggregate.as",
            )


def check_copy(engine: Engine, base: BaseSnapshot, changelog: str) -> None:
    """Read what a snapshot has of a changelog, and compare it with what was written.

    :raises ConfigError: when it is something else
    """
    kept = base.of_changelog(changelog)
    engine.services.progress.step(f"checking {kept.name}: {counted(kept.records, 'record')} of {base.folder}")
    whole_view(engine, kept, store_folder(base.folder, kept))
