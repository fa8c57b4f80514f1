"""A snapshot as the start of a program's tasks: their stores hold its rows, as after a restore, and they read what came since."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.errors import Refused
from kops.core.statefile import StateFile
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture, Store
from kops.core.streams.foreign_keys import answer_topics
from kops.core.streams.program import tasks_of, topics_of
from kops.operations.engine.spark import Engine
from kops.operations.state.from_snapshot import BaseSnapshot, check_copy
from kops.operations.state.rules.witnesses import partitions_text
from kops.operations.state.snapshot import store_folder

_INSTEAD = "leave out --from-snapshot; or `kops state restore` brings the snapshot back, and the application reads on from there"


def restored_changelogs(capture: Capture, number: int, base: BaseSnapshot) -> Mapping[str, str]:
    """Return the changelogs of a sub-topology, with the paths of their rows in a snapshot."""
    changelogs = [store.changelog for store in _stores(capture, [number]) if store.changelog is not None]
    return {changelog: str(store_folder(base.folder, base.of_changelog(changelog))) for changelog in changelogs}


def refuse_start(capture: Capture, state_file: StateFile, base: BaseSnapshot) -> None:
    """Refuse to start from a snapshot what it has not all of: the stores, and all others of their tasks and of those before them.

    :raises Refused: naming a store, and why
    :raises UsageProblem: when the snapshot lacks a store
    """
    numbers, chosen = _concerned(capture, state_file), {store.changelog for store in state_file.stores}
    for store in _stores(capture, numbers):
        why = _reason_against(capture, store)
        if why:
            raise Refused(f"the tasks cannot start from a snapshot: their store {store.name} {why}", hint=_INSTEAD)
        kept = base.of_changelog(store.changelog or "")
        if kept.emptied and store.changelog not in chosen:
            lost = f"had lost every record of {partitions_text(kept.emptied)}"
            raise Refused(f"the tasks cannot start from a snapshot: their store {store.name} {lost} when it was taken", hint=_INSTEAD)
    read = {topic.name for number in numbers for topic in tasks_of(capture)[number].repartition_topics}
    if read & answer_topics(capture):
        raise Refused("the tasks cannot start from a snapshot: foreign-key joins fill their stores, in turns", hint=_INSTEAD)


def check_start(engine: Engine, capture: Capture, state_file: StateFile, base: BaseSnapshot) -> None:
    """Compare what is used of a snapshot besides the chosen stores with what was written.

    :raises ConfigError: when it is something else
    """
    chosen = {store.changelog for store in state_file.stores}
    for store in _stores(capture, _concerned(capture, state_file)):
        if store.changelog is not None and store.changelog not in chosen:
            check_copy(engine, base, store.changelog)


def _concerned(capture: Capture, state_file: StateFile) -> list[int]:
    """Return the sub-topologies of the stores, and all before them."""
    numbers: dict[int, None] = {}
    for store in state_file.stores:
        found = capture.subtopology_of(store.name)
        if found is not None:
            numbers |= dict.fromkeys([found.number, *topics_of(capture, found.number).upstream])
    return list(numbers)


def _stores(capture: Capture, numbers: list[int]) -> list[Store]:
    nodes = {name for number in numbers for name in tasks_of(capture)[number].nodes}
    return [store for store in capture.stores if nodes & set(store.processors or ())]


def _reason_against(capture: Capture, store: Store) -> str:
    reused = {topic.name for each in capture.subtopologies for topic in each.changelogs if topic.is_source_topic}
    reasons = {
        "has no changelog, so it is in no snapshot": store.changelog is None,
        "is restored from its topic, and is in no snapshot": store.changelog in reused,
        "is of a class of the program itself": store.has_own_class,
        f"is a {store.kind} store, of whose versions or order a snapshot has not all": store.kind not in captured.BY_KEY,
        "forgets its oldest keys, and no snapshot has their order": store.capacity is not None,
        "keeps headers, with which no task starts yet": store.headers,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
