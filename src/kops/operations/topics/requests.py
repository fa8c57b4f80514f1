"""What the commands request, as changes: create, alter, add-partitions and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from kops.core.errors import AlreadyExists, Refused
from kops.core.models import NewTopic, Setting, Topic, value_of
from kops.core.plan import Plan
from kops.core.selection import is_glob
from kops.core.settings import own_settings, requested
from kops.core.streams.topics import owner_of
from kops.core.topics.changes import Changes, TopicRequest
from kops.core.topics.names import is_kafkas_own, refuse_kafkas_own, require_names
from kops.core.topics.settings import POLICY, canonical_settings, require_setting_names
from kops.core.topics.warnings import grouped
from kops.operations.services import Services
from kops.operations.topics.impact import Readers, group_names, readers_of, streams_uses
from kops.operations.topics.listing import select
from kops.operations.topics.plan import CREATE, DELETE, plan_changes
from kops.operations.topics.read_back import differences_of


def plan_create(services: Services, names: Sequence[str], request: TopicRequest, *, if_not_exists: bool = False) -> Plan[Changes]:
    """Plan to create topics, after the brokers have validated it.

    :raises UsageProblem: for a name or setting that Kafka refuses
    :raises AlreadyExists: when a topic exists, unless ``if_not_exists``
    :raises NotFound: when the topic ``like`` does not exist
    """
    wanted = list(dict.fromkeys(names))
    require_names(wanted)
    request = replace(request, settings=canonical_settings(request.settings, also_known=lambda: settings_known_to_brokers(services)))
    settings = request.own_settings()
    if request.like is not None:
        model = services.kafka.topics.describe([request.like])[request.like]
        inherited = own_settings(services.kafka.topics.settings([request.like])[request.like])
        settings = request.own_settings({name: value for name, value in inherited.items() if "throttled" not in name})
        request = replace(
            request,
            partitions=request.partitions or len(model.partitions),
            replication_factor=request.replication_factor or model.replication_factor,
        )
    topics = [NewTopic(name, request.partitions, request.replication_factor, settings) for name in wanted]
    existing = set(services.kafka.topics.names())
    present = services.kafka.topics.existing(name for name in wanted if name in existing)
    if present and not if_not_exists:
        plural = "topics exist" if len(present) > 1 else "topic exists"
        raise AlreadyExists(
            f"the {plural} already: {', '.join(present)}",
            hint="--if-not-exists leaves those that exist as they are, and says where they differ",
            topics=list(present),
        )
    return plan_creation(services, topics, present)


def plan_creation(services: Services, topics: Sequence[NewTopic], present: Mapping[str, Topic]) -> Plan[Changes]:
    """Plan to create those of some topics that do not exist.

    :param present: those that exist, which are left unchanged
    """
    settings = services.kafka.topics.settings(present)
    different = {topic.name: differences_of(topic, present[topic.name], settings[topic.name]) for topic in topics if topic.name in present}
    names = list(different)
    return plan_changes(
        services,
        Changes(create=tuple(topic for topic in topics if topic.name not in present)),
        operation=CREATE,
        unchanged={name: "; ".join(["exists already", *found]) for name, found in different.items()},
        nothing=f"every topic exists already: {', '.join(names)}" if len(names) > 1 else f"the topic {''.join(names)} exists already",
        warnings=[f"{name} exists and is left unchanged, but differs: {'; '.join(found)}" for name, found in different.items() if found],
    )


def plan_alter(
    services: Services, patterns: Sequence[str], settings: Mapping[str, str], remove: Sequence[str] = (), *, regex: bool = False
) -> Plan[Changes]:
    """Plan to change settings, after the brokers have validated it. Settings that are not named stay.

    :param patterns: names, globs, or regular expressions with ``regex``; patterns never match internal topics
    :param settings: the values to set, as people write them
    :param remove: settings to remove from the topics, so that the brokers' defaults apply again
    :raises UsageProblem: for a setting that Kafka does not know or a value that it refuses
    :raises NotFound: for a plain name that does not exist
    """
    known = partial(settings_known_to_brokers, services)
    target = requested(settings, remove, partial(canonical_settings, also_known=known))
    require_setting_names(remove, also_known=known)
    found = select(services, patterns, regex=regex)
    if not found:
        return plan_changes(services, Changes(), nothing=f"no topic matches {', '.join(patterns)}")
    changes = Changes(alter=dict.fromkeys(found, target))
    return plan_changes(services, changes, found=found, warnings=_owners(services, list(found), target))


def plan_add_partitions(
    services: Services, patterns: Sequence[str], partitions: int, *, regex: bool = False, allow_streams: bool = False
) -> Plan[Changes]:
    """Plan to add partitions, after the brokers have validated it.

    :param partitions: the total, not the number to add
    :param allow_streams: include topics that a Kafka Streams application reads or keeps its state in
    :raises Refused: for fewer partitions than now, for Kafka's internal topics, and for topics of Kafka Streams unless ``allow_streams``
    :raises NotFound: for a plain name that does not exist
    """
    found = select(services, patterns, regex=regex)
    if not found:
        return plan_changes(services, Changes(), nothing=f"no topic matches {', '.join(patterns)}")
    larger = [name for name, topic in found.items() if len(topic.partitions) > partitions]
    if larger:
        has = f"{larger[0]} has {len(found[larger[0]].partitions)} partitions"
        raise Refused(
            f"{has}, and Kafka cannot remove any", hint="a new topic with fewer partitions can be filled from this one", topics=larger
        )
    growing = {name: partitions for name, topic in found.items() if len(topic.partitions) < partitions}
    warnings = growth_warnings(services, growing, allow_streams=allow_streams)
    return plan_changes(services, Changes(grow=dict.fromkeys(found, partitions)), found=found, warnings=warnings)


def plan_delete(services: Services, patterns: Sequence[str], *, regex: bool = False, if_exists: bool = False) -> Plan[Changes]:
    """Plan to delete topics.

    :param patterns: names, globs, or regular expressions with ``regex``; patterns never match internal topics
    :param if_exists: skip plain names that do not exist
    :raises NotFound: for a plain name that does not exist
    :raises Refused: for Kafka's internal topics
    """
    refuse_kafkas_own(patterns, "would lose what they know", "deletes")
    wanted = list(patterns)
    if if_exists and not regex:
        existing = set(services.kafka.topics.names())
        wanted = [pattern for pattern in patterns if pattern in existing or is_glob(pattern)]
    found = select(services, wanted, regex=regex) if wanted else {}
    return plan_deletion(services, found, nothing=f"no topic matches {', '.join(patterns)}")


def plan_deletion(services: Services, found: Mapping[str, Topic], *, nothing: str = "the topics are gone already") -> Plan[Changes]:
    """Plan to delete exactly these topics: if one is recreated meanwhile, the plan is refused."""
    return plan_changes(services, Changes(delete=tuple(found)), operation=DELETE, found=found, nothing=nothing)


def growth_warnings(services: Services, growing: Mapping[str, int], *, allow_streams: bool) -> list[str]:
    """Return warnings about adding partitions: records of a key go to another partition from then on.

    :raises Refused: for Kafka's internal topics, and for those of Kafka Streams unless ``allow_streams``
    """
    if not growing:
        return []
    refuse_kafkas_own(growing, "find keys by its number of partitions", "grows")
    readers = readers_of(services, growing)
    uses = [(name, use) for name, found in streams_uses(services, growing, readers).items() for use in found]
    if uses and not allow_streams:
        more = f" (and {len(uses) - 1} more such uses)" if len(uses) > 1 else ""
        raise Refused(
            f"{uses[0][0]} {uses[0][1]}, which stops when its topics no longer have the same number of partitions{more}",
            hint="--allow-streams adds them anyway: the application's state then has to be rebuilt",
            topics=sorted({name for name, _ in uses}),
        )
    texts = [f"{name} {use}: its tasks, stores and repartition topics no longer fit, it has to be reset" for name, use in uses]
    return [*texts, *_keys_move(services.kafka.topics.settings(growing), growing), *_who_reads(readers, growing)]


def settings_known_to_brokers(services: Services) -> set[str]:
    """Return the names of topic settings that the brokers know: they may be newer than kops."""
    some = services.kafka.topics.names()[:10]  # one is enough; the others are a reserve, since other clients may be deleting topics
    return {name for settings in services.kafka.topics.settings(some, missing_ok=True).values() for name in settings}


def _owners(services: Services, names: Sequence[str], target: Mapping[str, str | None]) -> list[str]:
    """Warn about topics whose settings were chosen by the brokers or a Kafka Streams application."""
    texts = [f"{name} belongs to the brokers: they chose its settings" for name in names if is_kafkas_own(name)]
    if POLICY not in target and not any(name.startswith("retention.") for name in target):
        return texts
    suspects = [name for name in names if name.endswith(("-changelog", "-repartition"))]
    group_ids = services.kafka.groups.ids() if suspects else []
    for name in suspects:
        application = owner_of(name, group_ids)
        if application:
            texts.append(
                f"{name} is an internal topic of the Kafka Streams application {application}, which relies on how it keeps records"
            )
    return texts


def _keys_move(settings: Mapping[str, Mapping[str, Setting]], growing: Mapping[str, int]) -> list[str]:
    texts = []
    for name in growing:
        policy = value_of(settings[name], POLICY)
        texts.append((name, "records of a key go to another partition from now on: their order across the change is lost"))
        if "compact" in policy.split(","):
            old = "compacted: the last value of a key in its old partition stays forever, in addition to newer ones in the new partition"
            texts.append((name, old))
    return grouped(texts)


def _who_reads(readers: Readers, growing: Mapping[str, int]) -> list[str]:
    texts = []
    for name in growing:
        groups = sorted(readers.of(name))
        if groups:
            texts.append(
                f"{name} is read by {group_names(groups)}: what starts at the log end misses the first records of the new partitions"
            )
    if readers.unseen:
        texts.append(f"not every group could be asked whether it reads what grows: {readers.unseen}")
    return texts
