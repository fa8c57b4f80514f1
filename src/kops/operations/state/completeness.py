"""Parts of an application that the computation does not cover, and the steps left before it can be started."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kops.core.findings import names_text
from kops.core.models import Bounds
from kops.core.statefile import StateFile
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topics import CHANGELOG, owner_of
from kops.core.streams.verdict import DOUBTFUL
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore
from kops.operations.state.rules.witnesses import partitions_text

_NAMED = 8


@dataclass(frozen=True)
class UncoveredChangelog:
    """A changelog of the application that was not checked.

    :param emptied: its partitions without records that once had some; all of them where the whole topic is empty
    """

    topic: str
    partitions: int
    emptied: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        return len(self.emptied) == self.partitions

    @property
    def text(self) -> str:
        if self.is_empty:
            return f"{self.topic} (empty)"
        was = "was" if len(self.emptied) == 1 else "were"
        return f"{self.topic} ({partitions_text(self.emptied)} {was} emptied)" if self.emptied else self.topic


def uncovered_changelogs(services: Services, state_file: StateFile) -> list[UncoveredChangelog]:
    """Return the changelogs of the application that no chosen store of its state file has, empty ones first."""
    application = state_file.application
    covered = {store.changelog for store in state_file.stores} | {
        store.window.buffer for store in state_file.stores if store.window and store.window.buffer
    }
    groups = {*services.kafka.groups.ids(), application}
    names = [
        name
        for name in services.kafka.topics.names()
        if name.endswith(CHANGELOG) and name not in covered and owner_of(name, groups) == application
    ]
    described = services.kafka.topics.existing(names)
    bounds = services.kafka.offsets.bounds([at for topic in described.values() for at in topic.places])
    found = [
        UncoveredChangelog(topic.name, len(topic.places), _emptied([bounds[at] for at in topic.places])) for topic in described.values()
    ]
    return sorted(found, key=lambda each: (not each.is_empty, not each.emptied, each.topic))


def _emptied(bounds: Sequence[Bounds]) -> tuple[int, ...]:
    empty = [number for number, bound in enumerate(bounds) if bound.empty]
    if len(empty) == len(bounds):
        return tuple(empty)
    return tuple(number for number in empty if bounds[number].log_end_offset > 0)


def uncovered_note(state_file: StateFile, uncovered: Sequence[UncoveredChangelog]) -> list[str]:
    if not uncovered:
        return []
    some = names_text((each.text for each in uncovered), _NAMED)
    return [f"not checked: no selected store of {state_file.path} uses it: {some}"]


def stale_local_state(application: str, computed: Iterable[ComputedStore]) -> list[str]:
    """Return where local stores would not follow: a log that was emptied or recreated does not delete old keys."""
    lost = []
    for found in computed:
        numbers = [number for number in sorted(found.contents) if _lacks_most(found, number)] if found.must_write else []
        if numbers:
            topic = found.facts.store.changelog
            lost.append(topic if len(numbers) == len(found.facts.changelog_bounds) else f"{topic}:{','.join(map(str, numbers))}")
    if not lost:
        return []
    verb = "is" if len(lost) == 1 else "are"
    return [delete_local_state(application, why=f"{', '.join(lost)} {verb} empty, or without most of the keys")]


def _lacks_most(found: ComputedStore, number: int) -> bool:
    actions = found.actions.get(number, {})
    return found.facts.changelog_bounds[number].offsets <= actions.get("added", 0) + actions.get("erased", 0)


def still_open(computed: Sequence[ComputedStore], uncovered: Sequence[UncoveredChangelog], wipes: Sequence[str]) -> list[str]:
    in_question = [found for found in computed if found.word == DOUBTFUL or found.verdict.computed]
    unproven = [f"{found.facts.store.name} ({found.verdict.text})" for found in in_question]
    emptied = [each.text for each in uncovered if each.emptied]
    unseen = [each.text for each in uncovered if not each.emptied]
    return [
        *wipes,
        *([f"see that these stores are right: {', '.join(unproven)}"] if unproven else []),
        *([f"these changelogs lost records, and nothing was done about them: {', '.join(emptied)}"] if emptied else []),
        *([f"see that these changelogs are right, which were not checked: {names_text(unseen, _NAMED)}"] if unseen else []),
    ]


def before_starting(application: str, sentences: Sequence[str]) -> tuple[str, ...]:
    if not sentences:
        return (f"{application} can be started: its stores follow their changelogs",)
    return (f"before {application} is started:", *(f"- {sentence}" for sentence in sentences))
