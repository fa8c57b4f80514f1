"""Buffers of ``suppress()`` behind windowed stores: they cannot be computed again, so it is seen whether they are still there.

What a buffer logs holds, of the last record of each window, topic, partition, offset and headers; and values from before, which depend on
when the application's cache was flushed (``InMemoryTimeOrderedKeyValueChangeBuffer``).
"""

from __future__ import annotations

from kops.core.models import TopicPartition
from kops.core.statefile import StateFile
from kops.operations.services import Services
from kops.operations.state.exactness import Exactness

_WHOLE = Exactness("A")


def judge_buffers(services: Services, state_file: StateFile) -> dict[str, Exactness]:
    """Judge stores by the buffers behind them.

    :return: store -> D where its buffer has no records: results of windows that are open now would get lost
    """
    buffers = {store.name: store.window.buffer for store in state_file.stores if store.window and store.window.buffer}
    described = services.kafka.topics.existing(sorted(set(buffers.values())))
    judged = {}
    for store, topic in buffers.items():
        if topic not in described:
            judged[store] = _lost(topic, "does not exist")
            continue
        bounds = services.kafka.offsets.bounds([TopicPartition(topic, found.partition) for found in described[topic].partitions])
        is_empty = all(bound.log_start_offset == bound.log_end_offset for bound in bounds.values())
        judged[store] = _lost(topic, "is empty") if is_empty else _WHOLE
    return judged


def _lost(topic: str, how: str) -> Exactness:
    what = "the buffer of suppress() cannot be rebuilt, and the result of a window that is open now is only sent if a record of it follows"
    return Exactness("D", (f"{topic} {how}: {what}",), hides=True)
