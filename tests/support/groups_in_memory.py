"""Groups without members in memory, behind the gateway's methods: what is committed, deleted and read back, without a broker."""

from dataclasses import dataclass, field
from types import SimpleNamespace

from kops.core.errors import NotFound
from kops.core.models import Bounds, Cluster, CommittedOffset, Group, GroupOffsets, Member, TopicPartition


def partition(text):
    topic, _, number = text.rpartition(":")
    return TopicPartition(topic, int(number))


@dataclass
class GroupsInMemory:
    """A cluster with topics and groups.

    :param ends: log start and end offsets by partition
    :param committed: by group, what it has committed
    :param members: groups that have one
    """

    ends: dict[TopicPartition, tuple[int, int]]
    commits: dict[str, dict[TopicPartition, CommittedOffset]]
    cluster_id: str = "cluster-1"
    members: set[str] = field(default_factory=set)

    @classmethod
    def of_json(cls, bounds, groups, cluster_id):
        """Return the cluster that a file describes: partitions with their bounds, groups with offset, metadata and leader epoch."""
        commits = {name: {partition(at): CommittedOffset(*one) for at, one in offsets.items()} for name, offsets in groups.items()}
        return cls({partition(at): tuple(ends) for at, ends in bounds.items()}, commits, cluster_id)

    def as_json(self):
        return {
            name: {str(at): [one.offset, one.metadata, one.leader_epoch] for at, one in sorted(offsets.items())}
            for name, offsets in self.commits.items()
        }

    @property
    def groups(self):
        return self

    def heard_by_all(self):
        """Do not wait: it is one."""

    @property
    def offsets(self):
        return SimpleNamespace(
            bounds_or_errors=self._bounds,
            bounds=self._bounds,
            stable=lambda places: {place: self._bounds([place])[place].log_end_offset for place in places},
            partitions_of=self._partitions,
            partitions_or_errors=lambda topics: (self._partitions(topics), {}),
            found_at=lambda places, _milliseconds: dict.fromkeys(places),
        )

    @property
    def topics(self):
        """Which there are, and requests that concern none."""
        nothing = dict.fromkeys(
            ("describe", "settings", "settings_or_errors", "alter", "create", "delete", "add_partitions"), lambda *_, **__: {}
        )
        there = {at.topic for at in self.ends}
        return SimpleNamespace(any_without_id=False, existing=lambda names: {name: None for name in names if name in there}, **nothing)

    def hidden_topics(self):
        return [], None

    def close(self):
        pass

    def cluster(self):
        return Cluster(self.cluster_id, 1, ())

    def down(self):
        return {}

    def replaced(self):
        return {}

    def listed(self, *, partial=False):
        return [self._group(name, described=False) for name in sorted(self.commits)]

    def ids(self):
        return sorted(self.commits)

    def describe(self, names):
        return {name: self._known(name) for name in names}

    def describe_or_errors(self, names):
        return {name: self._group(name) if name in self.commits else NotFound(f"no group {name}") for name in names}

    def committed(self, names, *, stable=False):
        return {name: dict(self.commits.get(name, {})) for name in names}

    def commit(self, name, offsets):
        if offsets:
            kept = {at: CommittedOffset(one.offset, one.metadata or "", one.leader_epoch) for at, one in offsets.items()}
            self.commits.setdefault(name, {}).update(kept)
        return dict.fromkeys(offsets)

    def delete_offsets(self, name, places):
        for place in places:
            self.commits[name].pop(place, None)
        return dict.fromkeys(places)

    def delete(self, names):
        return {name: None if self.commits.pop(name, None) is not None else NotFound(f"no group {name}") for name in names}

    def _known(self, name):
        if name not in self.commits:
            raise NotFound(f"no group {name}")
        return self._group(name)

    def _group(self, name, *, described=True):
        if name not in self.members:
            return Group(name, "EMPTY", "consumer")
        return Group(name, "STABLE", "consumer", members=(Member("one", "client", "host"),) if described else ())

    def read_offsets(self, names, *, stable=False):
        for name in names:
            found = GroupOffsets()
            for at, one in self.commits.get(name, {}).items():
                found.offsets.setdefault(at.topic, {})[at.partition] = one.offset
                if one.leader_epoch is not None:
                    found.epochs.setdefault(at.topic, {})[at.partition] = one.leader_epoch
                if one.metadata:
                    found.metadata.setdefault(at.topic, {})[at.partition] = one.metadata
            yield name, found

    def begin_commit(self, name, offsets):
        places = {TopicPartition(topic, number): CommittedOffset(offset) for topic, some in offsets.items() for number, offset in some}
        self.commit(name, places)
        return SimpleNamespace(errors=dict)

    def _partitions(self, topics):
        return {topic: sorted(at for at in self.ends if at.topic == topic) for topic in topics}

    def _bounds(self, places, **_):
        return {place: Bounds(*self.ends[place]) if place in self.ends else NotFound(f"there is no partition {place}") for place in places}
