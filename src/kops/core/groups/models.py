"""What groups of the newer types report beyond members and partitions."""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.models import Group, Member


@dataclass(frozen=True)
class WorkingMember(Member):
    """A member of a share, streams or Connect group.

    :param epoch: of the member; it changes with its assignment. None if there is none
    :param work: what it does, other than reading partitions: ``active 0_1`` (a task of Kafka Streams), ``connector sink``, ``task sink-0``
    """

    epoch: int | None = None
    work: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subtopology:
    """A sub-topology, as the Kafka Streams application registered it with its group.

    :param source_topics: topics that it reads
    :param repartition_topics: internal topics that it reads
    :param changelog_topics: of its stores
    """

    subtopology: str
    source_topics: tuple[str, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    changelog_topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkingGroup(Group):
    """A share, streams or Connect group whose members are known.

    :param epoch: of the group; it changes with members and topics. None if there is none
    """

    epoch: int | None = None
    subtopologies: tuple[Subtopology, ...] = ()
