"""Groups of every type, and their committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.errors import AuthorizationFailed, BrokerDown, KopsError, NotFound, TimedOut, answer_or_error
from kops.core.groups.lag import Place
from kops.core.models import Group, Member, ShareOffset, TopicPartition
from kops.gateways.kafka.admin import can_express
from kops.gateways.kafka.groups.answers import group_of, kafka_words, listed_group
from kops.gateways.kafka.groups.committed import CommittedOffsets
from kops.gateways.kafka.presence import DOWN_HINT
from kops.gateways.kafka.translate import all_good, group_not_found

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from kops.gateways.kafka.client import Client
    from kops.gateways.kafka.groups.first_records import Answer


UNPARSED = ("_BAD_MSG", "_DESTROY", "_FAIL", "_UNDERFLOW")
"""librdkafka's errors where it could not parse the bytes of a member: it has no error of its own for that."""


class Groups(CommittedOffsets):
    def ids(self) -> list[str]:
        return [group.group_id for group in self.listed()]

    def listed(self, *, partial: bool = False) -> list[Group]:
        """Return every group of every type with its state, without members and coordinator.

        confluent-kafka lists only classic and consumer groups: it silently omits share, streams and Connect groups.

        :param partial: leave out the groups of brokers that do not accept connections, for callers that report what is missing
        :raises BrokerDown: for such a broker, otherwise
        """
        if not can_express(self._client.connection):
            return sorted(self._listed_by_librdkafka(), key=lambda group: group.group_id)
        answers = self._listed_by(self._wire.brokers())
        if any(isinstance(answer, KopsError) for answer in answers.values()):
            if (down := self._wire.down_for_good()) and not partial:
                raise BrokerDown(f"could not list the groups: {'; '.join(down.values())}", hint=DOWN_HINT)
            answers = self._listed_by(self._client.presence.up())
        if not partial and (moving := self._client.presence.replaced()):
            why = f"{'; '.join(moving.values())}, and others are taking over its groups"
            raise BrokerDown(f"could not list all groups: {why}", hint="run the command again in a moment")
        return sorted((listed_group(one) for some in all_good(answers).values() for one in some), key=lambda group: group.group_id)

    def _listed_by(self, brokers: Iterable[int]) -> dict[int, list[Any] | KopsError]:
        return self._wire.brokers_or_errors(
            brokers, "list the groups of broker", lambda admin, broker: admin.list_groups(broker_ids=[broker])
        )

    def describe(self, group_ids: Iterable[str]) -> dict[str, Group]:
        """Return groups with members and coordinator.

        :raises NotFound: for a group that does not exist: Kafka answers DEAD for a typo, and for types that the client does not know
        """
        return all_good(self.describe_or_errors(group_ids))

    def describe_or_errors(self, group_ids: Iterable[str]) -> dict[str, Group | KopsError]:
        """Return each group, or why it is not known.

        Share, streams and Connect groups are as listed, without members, if kafka-python or the broker cannot describe them.
        """
        answers = self._ask_for(sorted(set(group_ids)))
        if missing := [name for name, answer in answers.items() if isinstance(answer, NotFound)]:
            doubts = _not_yet_known(self._client, missing)
            answers |= self._ask_for(missing)
            answers |= {name: doubt for name, doubt in doubts.items() if isinstance(answers[name], NotFound)}
        return answers

    def _ask_for(self, wanted: Sequence[str]) -> dict[str, Group | KopsError]:
        if not wanted:
            return {}
        listed = {group.group_id: group for group in self.listed(partial=True)}
        stranded = self._wire.stranded(wanted)
        wanted = [group_id for group_id in wanted if group_id not in stranded]
        # librdkafka rejects the id "", which clients before Kafka 2.2 could commit for, and then answers for no group at all.
        plain = [name for name in wanted if name and (name not in listed or listed[name].type in ("classic", "consumer"))]
        futures = self._client.admin.describe_consumer_groups(plain, request_timeout=self._client.timeout) if plain else {}
        others = [listed[group_id] for group_id in wanted if group_id not in futures and group_id in listed]
        unknown = {group_id: group_not_found(group_id) for group_id in wanted if group_id not in futures and group_id not in listed}
        answers: dict[str, Group | KopsError] = {**stranded, **unknown, **{group.group_id: group for group in others}}
        if others:
            from kops.gateways.kafka.groups.working import describe

            answers |= describe(self._wire, others)
        for group_id, future in futures.items():
            outcome = self._client.outcome(future, f"describe group {group_id}", again=partial(self._ask_to_describe, group_id))
            answers[group_id] = self._parsed(group_id, outcome, listed.get(group_id))
        return {group_id: answers[group_id] for group_id in sorted(answers)}

    def _parsed(self, group_id: str, outcome: Any, listed: Group | None) -> Group | KopsError:
        if not isinstance(outcome, KopsError):
            return _described(outcome, listed)
        if outcome.details.get("kafka_error") not in UNPARSED or not can_express(self._client.connection):
            return outcome
        from kops.gateways.kafka.groups.working import describe_unparsed

        return describe_unparsed(self._wire, group_id)

    def _ask_to_describe(self, group_id: str, admin: AdminClient) -> Any:
        return admin.describe_consumer_groups([group_id], request_timeout=self._client.timeout)[group_id]

    def require_share_groups(self, *, change: bool = False) -> None:
        """Look whether the brokers have share groups.

        :param change: and move their start offsets: those of Kafka 4.1 take that request and do nothing
        :raises BrokersTooOld: before Kafka 4.1, or 4.2
        """
        self._wire.require("change share groups" if change else "read share groups", "DescribeShareGroupOffsets", int(change))

    def share_offsets(self, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, ShareOffset] | KopsError]:
        """Return where share groups are, by group, or why it is not known.

        :raises KopsError: when the brokers do not know the request, before Kafka 4.1, or do not answer
        """
        from kops.gateways.kafka.groups.working import share_offsets

        return share_offsets(self._wire, group_ids)

    def move_share_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, KopsError | None]:
        """Set start offsets of a share group; see :func:`kops.gateways.kafka.groups.working.move_share_offsets`."""
        from kops.gateways.kafka.groups.working import move_share_offsets

        return move_share_offsets(self._wire, group_id, offsets)

    def delete_share_offsets(self, group_id: str, topics: Sequence[str]) -> dict[str, KopsError | None]:
        """Delete start offsets of a share group in topics."""
        from kops.gateways.kafka.groups.working import delete_share_offsets

        return delete_share_offsets(self._wire, group_id, topics)

    def first_records(self, places: Iterable[Place], *, isolation: str) -> dict[Place, Answer]:
        from kops.gateways.kafka.groups.first_records import first_records

        return first_records(self._client, places, isolation=isolation)

    def remove(self, group: Group, members: Sequence[Member]) -> dict[str, KopsError | None]:
        """Remove members from a group, each by the request with which it would leave; return the error of each by its id, or None.

        :param group: as described
        """
        from kops.gateways.kafka.groups.removal import remove

        return remove(self._wire, group, members)

    def delete(self, group_ids: Collection[str]) -> dict[str, KopsError | None]:
        """Delete groups and their committed offsets; return the error of each, None if it is gone."""
        wanted = sorted(set(group_ids) - {""})
        futures = self._client.admin.delete_consumer_groups(wanted, request_timeout=self._client.timeout) if wanted else {}
        errors = self._client.errors(futures, "delete group")
        return errors | {"": self._delete_unnamed()} if "" in group_ids else errors

    def _delete_unnamed(self) -> KopsError | None:
        """Delete the group whose id is empty, which librdkafka does not."""
        from kafka import errors

        def ask(admin: Any) -> None:
            if (name := admin.delete_groups([""])[""]) != "OK":
                raise getattr(errors, name)

        return answer_or_error(lambda: self._wire.ask("delete group ''", ask))

    def _listed_by_librdkafka(self) -> list[Group]:
        visible = self._client.wait(self._client.admin.list_consumer_groups(request_timeout=self._client.timeout), "list the groups")
        known = {group.group_id: Group(group.group_id, kafka_words(group.state.name), group.type.name.lower()) for group in visible.valid}
        every = self._client.list_groups(timeout=self._client.timeout)
        return [known.get(group.id) or Group(group.id, "UNKNOWN", group.protocol_type or "unknown") for group in every]


def _not_yet_known(client: Client, group_ids: Collection[str]) -> dict[str, KopsError]:
    """Wait until coordinators know the groups that others have left to them; return those of which that is not known, and why.

    Until then a coordinator reports them as DEAD. It knows what is below the high watermark of its partition, and that partition's leader
    answers ListOffsets once the watermark has passed all that earlier leaders have written (KIP-207). Empty where ``__consumer_offsets``
    does not exist, or may not be described.
    """
    from kops.formats.groups.consumer_offsets import TOPIC, partition_of_group
    from kops.gateways.kafka.offsets import Offsets

    topic = client.describe_topics([TOPIC])[TOPIC]
    if isinstance(topic, KopsError):
        return {}
    places = {name: TopicPartition(TOPIC, partition_of_group(name, len(topic.partitions))) for name in group_ids}
    ends = Offsets(client).bounds_or_errors(places.values())
    late = {name: ends[place] for name, place in places.items()}
    return {
        name: TimedOut(f"whether there is a group {name} is not known: {why.message}", hint="run the command again in a moment", group=name)
        for name, why in late.items()
        if isinstance(why, KopsError) and not isinstance(why, AuthorizationFailed)
    }


def _described(answer: Any, listed: Group | None) -> Group | KopsError:
    """Combine the description of a group with its entry in the list of groups."""
    group = group_of(answer)
    if listed is None and group.state == "DEAD":
        return group_not_found(group.group_id)
    if listed is not None and group.state in ("DEAD", "UNKNOWN"):
        return replace(group, state=listed.state, type=listed.type)
    return group
