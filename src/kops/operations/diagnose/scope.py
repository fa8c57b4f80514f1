"""What to examine: the groups, topics and connectors that were named, and what belongs to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.connect.models import Connector
from kops.core.errors import NotFound
from kops.core.models import Group, TopicPartition
from kops.core.own_names import may_match
from kops.core.selection import is_glob, names_matching
from kops.operations.groups.matching import WITH_OFFSETS, similar, why_incomplete
from kops.operations.services import Services
from kops.operations.topics.impact import readers_of


@dataclass(frozen=True)
class Scope:
    """Some groups and topics, or all.

    :param groups: those that commit offsets, by name, with the topics of each that are in scope; None: all of its topics
    :param topics: the topics that were named
    :param connectors: the connectors that were named
    :param share_groups: the share groups
    :param others: groups that were named of types without offsets, each with its type
    :param unseen: why groups that read the named topics may be missing; empty if none are
    :param whole: nothing was named: everything is examined
    """

    groups: Mapping[str, frozenset[str] | None]
    topics: tuple[str, ...]
    whole: bool
    connectors: frozenset[str] = frozenset()
    share_groups: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    unseen: str = ""

    def includes(self, group_id: str, partition: TopicPartition) -> bool:
        topics = self.groups.get(group_id)
        return topics is None or partition.topic in topics


def scope_of(services: Services, names: Sequence[str], *, regex: bool = False, connectors: Collection[Connector] = ()) -> Scope:
    """Resolve names. A name may be that of a group, a topic and a connector at the same time.

    A topic adds the groups that read it, a sink connector its group, and any connector the topics that it is configured to read.

    :param connectors: all existing connectors
    :raises NotFound: for a plain name that is not a group, topic or connector
    """
    listed = {group.group_id: group for group in services.kafka.groups.listed(partial=True) if may_match(group.group_id, names)}
    if not names:
        return Scope(dict.fromkeys(_with_offsets(listed, listed)), (), whole=True, share_groups=_names_of_type("share", listed, listed))
    topics, by_name = services.kafka.topics.names(), {connector.name: connector for connector in connectors}
    plain = [name for name in names if not regex and not is_glob(name)]
    for name in plain:
        if name not in listed and name not in topics and name not in by_name:
            if missing := why_incomplete(services):
                raise missing
            near = similar(name, [*listed, *topics, *by_name])
            hint = f"did you mean {' or '.join(near)}?" if near else "`kops groups list` and `kops topics list` show what there is"
            what = "no group, no topic and no connector" if connectors else "no group and no topic"
            raise NotFound(f"there is {what} {name}", hint=hint, name=name)
    some = _matching(names, by_name, regex=regex)
    groups = [*_matching(names, listed, regex=regex), *(group for name in some if (group := by_name[name].group) in listed)]
    named_topics = _matching(names, topics, regex=regex)
    wanted: dict[str, frozenset[str] | None] = {}
    unseen = ""
    if named_topics:
        readers = readers_of(services, named_topics)
        unseen = readers.unseen
        for topic in named_topics:
            for group_id in readers.of(topic):
                if may_match(group_id, names):
                    wanted[group_id] = (wanted.get(group_id) or frozenset()) | {topic}
    wanted |= {group_id: None for group_id in groups if group_id is not None}
    found = {name: wanted[name] for name in _with_offsets(sorted(wanted), listed)}
    share = _names_of_type("share", wanted, listed)
    others = {name: listed[name].type for name in wanted if name not in found and name not in share}
    return Scope(found, tuple(named_topics), whole=False, connectors=frozenset(some), share_groups=share, others=others, unseen=unseen)


def _matching(names: Sequence[str], known: Collection[str], *, regex: bool) -> list[str]:
    patterns = [name for name in names if regex or is_glob(name) or name in known]
    return names_matching(patterns, known, regex=regex) if patterns else []


def _with_offsets(names: Collection[str], listed: Mapping[str, Group]) -> list[str]:
    return [name for name in names if name in listed and listed[name].type in WITH_OFFSETS]


def _names_of_type(kind: str, names: Collection[str], listed: Mapping[str, Group]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name in listed and listed[name].type == kind))
