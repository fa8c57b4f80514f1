"""Buffers of ``suppress()`` behind windowed stores: they cannot be computed again, so it is seen whether they are still there.

What a buffer logs holds, of the last record of each window, topic, partition, offset and headers; and values from before, which depend on
when the application's cache was flushed (``InMemoryTimeOrderedKeyValueChangeBuffer``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.models import Bounds, TopicPartition
from kops.core.statefile import StateFile
from kops.operations.services import Services
from kops.operations.state.exactness import Exactness

_WHOLE = Exactness("A")


def judge_buffers(services: Services, state_file: StateFile) -> dict[str, Exactness]:
    """Judge stores by the buffers behind them.

    :return: store -> D where its buffer, or a partition of it, has no records though the store has: results of open windows would get lost
    """
    stores = {store.name: (store.changelog, store.window.buffer) for store in state_file.stores if store.window and store.window.buffer}
    described = services.kafka.topics.existing(sorted({topic for pair in stores.values() for topic in pair}))
    places = {topic: [TopicPartition(topic, each.partition) for each in found.partitions] for topic, found in described.items()}
    bounds = services.kafka.offsets.bounds([at for found in places.values() for at in found])
    return {
        store: judge_buffer(buffer, *([bounds[at] for at in places[topic]] if topic in places else None for topic in (buffer, changelog)))
        for store, (changelog, buffer) in stores.items()
    }


def judge_buffer(topic: str, buffer: Sequence[Bounds] | None, changelog: Sequence[Bounds] | None) -> Exactness:
    """Judge one buffer.

    :param buffer: bounds of its partitions in their order; None where it does not exist
    :param changelog: of the store before it, likewise
    """
    if buffer is None:
        return _lost(topic, "does not exist")
    empty = [number for number, bound in enumerate(buffer) if _is_empty(bound)]
    if len(empty) == len(buffer):
        return _lost(topic, "is empty")
    known = dict(enumerate(changelog or ()))
    lost = [number for number in empty if buffer[number].log_end_offset > 0 or (number in known and known[number].log_end_offset > 0)]
    return _lost(f"{topic}:{','.join(map(str, lost))}", "is empty") if lost else _WHOLE


def _is_empty(bound: Bounds) -> bool:
    return bound.log_start_offset == bound.log_end_offset


def _lost(topic: str, how: str) -> Exactness:
    what = "the buffer of suppress() cannot be rebuilt, and the result of a window that is open now is only sent if a record of it follows"
    return Exactness("D", (f"{topic} {how}: {what}",), hides=True)
