"""What to do where a topic that Kafka Streams made for itself is gone: the application is not to be started without it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from kops.core.streams.capture import Capture
from kops.core.streams.program import count_of, tasks_of, writers
from kops.core.streams.topics import REPARTITION_SETTINGS

NOT_STARTED = "do not start the application without it, unless it is new: it would create the topic, and count on from empty stores"
CHANGELOG_GONE = f"--write replace recreates it; {NOT_STARTED}"
"""The advice where a changelog is gone (KAFKA-10357: the library creates internal topics that are gone)."""


def repartition_gone(topic: str, partitions: int | None, settings: Mapping[str, str] | None = None, likely: str = "") -> str:
    """Return the advice where a repartition topic is gone.

    :param partitions: that the program gives it; None: not known
    :param settings: with which the program makes it; None: those of the library
    :param likely: what hints at the number where it is not known
    """
    options = [f"--config {shlex.quote(f'{name}={value}')}" for name, value in sorted((settings or REPARTITION_SETTINGS).items())]
    command = f"kops topics create {topic} --partitions {partitions or 'N'} {' '.join(options)}"
    count = "" if partitions else f" (N: as many as it had{likely and '; '}{likely})"
    return f"create it: `{command}`{count}; then --write replace also recreates changelogs that are gone; {NOT_STARTED}"


def partitions_of_repartition(capture: Capture, topic: str, partitions: Mapping[str, int]) -> int | None:
    """Return the number of partitions that a program gives a repartition topic; None where what exists does not show it.

    ``RepartitionTopics``: what the program says, else as many as the tasks that write into it; ``CopartitionedTopicsEnforcer``: as many as
    another topic of its sub-topology that it is joined with. A changelog of its sub-topology has as many as the tasks that read it.

    :param partitions: of the topics that exist
    """
    return _partitions(capture, topic, partitions, frozenset())


def _partitions(capture: Capture, topic: str, partitions: Mapping[str, int], asked: frozenset[str]) -> int | None:
    if topic in asked:
        return None
    readers = [each for each in tasks_of(capture).values() if topic in {one.name for one in each.repartition_topics}]
    said = next((one.partitions for each in readers for one in each.repartition_topics if one.name == topic and one.partitions), None)
    if said is not None:
        return said
    alone = all(each.read_topics == (topic,) for each in readers)
    shown = {partitions[log.name] for each in readers for log in each.changelogs if log.name in partitions and alone}
    if shown:
        return max(shown)
    if not alone:
        return None
    known = dict(partitions)
    for writer in writers(capture, topic):
        for before in tasks_of(capture)[writer].read_topics:
            if before not in known:
                found = _partitions(capture, before, partitions, asked | {topic})
                if found is None:
                    return None
                known[before] = found
    return max((count_of(capture, writer, known) for writer in writers(capture, topic)), default=0) or None
