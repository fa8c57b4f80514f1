"""Adding partitions: records of a key go elsewhere from then on, and nothing takes the partitions away again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import Refused
from kops.core.models import Setting
from kops.core.plan import Plan
from kops.core.topics.change import Changes
from kops.core.topics.names import is_kafkas_own
from kops.core.topics.settings import POLICY
from kops.core.topics.warnings import grouped
from kops.operations.services import Services
from kops.operations.topics.change_plan import plan_changes
from kops.operations.topics.listing import select
from kops.operations.topics.readers import Readers, group_names, readers_of
from kops.operations.topics.streams import streams_uses


def plan_add_partitions(
    services: Services, patterns: Sequence[str], partitions: int, *, regex: bool = False, allow_streams: bool = False
) -> Plan:
    """Decide what adding partitions would do; the brokers have checked it.

    :param partitions: in all, not to be added
    :param allow_streams: also topics that a Kafka Streams application reads or keeps its state in
    :raises Refused: for fewer partitions than there are, for the brokers' own topics, and without ``allow_streams``
    :raises NotFound: when a plain name does not exist
    """
    found = select(services, patterns, regex=regex)
    if not found:
        return plan_changes(services, Changes(), summary=f"no topic matches {', '.join(patterns)}")
    larger = [name for name, topic in found.items() if len(topic.partitions) > partitions]
    if larger:
        has = f"{larger[0]} has {len(found[larger[0]].partitions)} partitions"
        raise Refused(
            f"{has}, and Kafka cannot take any away", hint="a new topic with fewer partitions can be filled from this one", topics=larger
        )
    growing = {name: partitions for name, topic in found.items() if len(topic.partitions) < partitions}
    warnings = growth_warnings(services, growing, allow_streams=allow_streams)
    return plan_changes(services, Changes(grow=dict.fromkeys(found, partitions)), warnings=warnings)


def growth_warnings(services: Services, growing: Mapping[str, int], *, allow_streams: bool) -> list[str]:
    """Return what breaks when topics get more partitions.

    :raises Refused: for the brokers' own topics, and for those of Kafka Streams without ``allow_streams``
    """
    if not growing:
        return []
    own = [name for name in growing if is_kafkas_own(name)]
    if own:
        raise Refused(f"{own[0]} belongs to the brokers, which find keys by its number of partitions", hint="kops never grows it")
    readers = readers_of(services, growing)
    uses = [(name, use) for name, found in streams_uses(services, growing, readers).items() for use in found]
    if uses and not allow_streams:
        more = f" (and {len(uses) - 1} more such uses)" if len(uses) > 1 else ""
        raise Refused(
            f"{uses[0][0]} {uses[0][1]}, which stops when its topics no longer have the same number of partitions{more}",
            hint="--allow-streams adds them all the same: the application's state then has to be made again",
            topics=sorted({name for name, _ in uses}),
        )
    texts = [f"{name} {use}: its tasks, stores and repartition topics no longer fit, it has to be reset" for name, use in uses]
    return [*texts, *_keys_move(services.kafka.topics.settings(growing), growing), *_who_reads(readers, growing)]


def _keys_move(settings: Mapping[str, Mapping[str, Setting]], growing: Mapping[str, int]) -> list[str]:
    texts = []
    for name in growing:
        policy = settings[name][POLICY].value or "" if POLICY in settings[name] else ""
        texts.append((name, "records of a key go to another partition from now on: their order across the change is lost"))
        if "compact" in policy.split(","):
            texts.append(
                (
                    name,
                    "compacted: the last value of a key in its old partition stays forever, in addition to newer ones in the new partition",
                )
            )
    return grouped(texts)


def _who_reads(readers: Readers, growing: Mapping[str, int]) -> list[str]:
    texts = []
    for name in growing:
        groups = sorted({*readers.committed.get(name, ()), *readers.active.get(name, ())})
        if groups:
            texts.append(
                f"{name} is read by {group_names(groups)}: what starts at the log end misses the first records of the new partitions"
            )
    if readers.unseen:
        texts.append(f"not every group could be asked whether it reads what grows: {readers.unseen}")
    return texts
