"""Signs of lost records in the logs of changelogs and of the buffers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.findings import Finding
from kops.core.models import Bounds
from kops.core.statefile import StateFile
from kops.core.streams.verdict import doubt
from kops.operations.services import Services
from kops.operations.state.rules.witnesses import partitions_text


def lossy_partitions(starts: Mapping[int, int], cleanup_policy: str) -> list[int]:
    """Return the partitions of a changelog that have lost records: they begin above offset 0 although no setting deletes records.

    Compaction does not move a log's start. What was lost may have been restored by a rebuild since.

    :param starts: the first offset of each partition
    """
    return [] if "delete" in cleanup_policy.split(",") else [number for number, start in sorted(starts.items()) if start > 0]


def losses_text(topic: str, starts: Mapping[int, int], cleanup_policy: str, *, windowed: bool) -> str:
    """Return a sentence on which partitions of a changelog have lost records; empty when none has.

    :param windowed: its store has windows or sessions: what the settings delete has expired there, which is not a loss
    """
    deletes = "delete" in cleanup_policy.split(",")
    found = [number for number, start in sorted(starts.items()) if start > 0]
    if not found or (deletes and windowed):
        return ""
    has = "has" if len(found) == 1 else "have"
    how = f", which its settings delete (cleanup.policy={cleanup_policy})" if deletes else ""
    return f"{partitions_text(found)} of {topic} {has} lost records{how}: keys that nothing has written again since are missing there"


@dataclass(frozen=True)
class BufferLog:
    """The changelog of the buffer of ``suppress()`` behind a store.

    :param bounds: of its partitions; none where it has no records, or does not exist
    :param findings: it, or a partition of it, has no records though the store has: results of open windows would get lost
    """

    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_buffers(services: Services, state_file: StateFile) -> dict[str, BufferLog]:
    """Read the logs of the buffers behind stores, by store."""
    stores = {store.name: (store.changelog, store.window.buffer) for store in state_file.stores if store.window and store.window.buffer}
    described = services.kafka.topics.existing(sorted({topic for pair in stores.values() for topic in pair}))
    places = {topic: found.places for topic, found in described.items()}
    bounds = services.kafka.offsets.bounds([at for found in places.values() for at in found])

    def of(topic: str) -> list[Bounds] | None:
        return [bounds[at] for at in places[topic]] if topic in places else None

    found = {store: (of(buffer), judge_buffer(buffer, of(buffer), of(changelog))) for store, (changelog, buffer) in stores.items()}
    return {store: BufferLog(dict(enumerate(log or ())), judged) for store, (log, judged) in found.items()}


def judge_buffer(topic: str, buffer: Sequence[Bounds] | None, changelog: Sequence[Bounds] | None) -> tuple[Finding, ...]:
    """Judge one buffer.

    :param buffer: bounds of its partitions in their order; None where it does not exist
    :param changelog: bounds of the changelog of the store before it, in the same way
    """
    if buffer is None:
        return _lost(topic, "does not exist")
    empty = [number for number, bound in enumerate(buffer) if bound.empty]
    if len(empty) == len(buffer):
        return _lost(topic, "is empty")
    known = dict(enumerate(changelog or ()))
    lost = [number for number in empty if buffer[number].log_end_offset > 0 or (number in known and known[number].log_end_offset > 0)]
    return _lost(topic, "is empty", lost) if lost else ()


def _lost(topic: str, how: str, partitions: Sequence[int] = ()) -> tuple[Finding, ...]:
    what = "the buffer of suppress() cannot be rebuilt, and the result of a window that is open now is only sent if a record of it follows"
    which = f"{topic}:{','.join(map(str, partitions))}" if partitions else topic
    return (doubt("lost_buffer", f"{which} {how}: {what}", subject=topic),)
