"""Groups of every type, and their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError
from kops.core.groups.lag import Place
from kops.core.models import Group, ShareOffset, TopicPartition
from kops.gateways.kafka.admin import can_express
from kops.gateways.kafka.groups.answers import group_of, kafka_words, listed_group
from kops.gateways.kafka.groups.committed import CommittedOffsets
from kops.gateways.kafka.translate import all_good, group_not_found

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from kops.gateways.kafka.groups.first_records import Answer


class Groups(CommittedOffsets):
    def ids(self) -> list[str]:
        return [group.group_id for group in self.listed()]

    def listed(self) -> list[Group]:
        """Return every group of every type with its state, without members and coordinator.

        confluent-kafka lists only classic and consumer groups: it silently omits share, streams and Connect groups.
        """
        if can_express(self._client.connection):
            found = [listed_group(answer) for answer in self._wire.ask("list the groups", lambda admin: admin.list_groups(), patient=True)]
        else:
            found = self._listed_by_librdkafka()
        return sorted(found, key=lambda group: group.group_id)

    def describe(self, group_ids: Iterable[str]) -> dict[str, Group]:
        """Return groups with members and coordinator.

        :raises NotFound: for a group that does not exist: Kafka answers DEAD for a typo, and for types that the client does not know
        """
        return all_good(self.describe_or_errors(group_ids))

    def describe_or_errors(self, group_ids: Iterable[str]) -> dict[str, Group | KopsError]:
        """Return each group, or why it is not known.

        Share, streams and Connect groups are as listed, without members, if kafka-python or the broker cannot describe them.
        """
        wanted = sorted(set(group_ids))
        if not wanted:
            return {}
        listed = {group.group_id: group for group in self.listed()}
        plain = [group_id for group_id in wanted if group_id not in listed or listed[group_id].type in ("classic", "consumer")]
        futures = self._client.admin.describe_consumer_groups(plain, request_timeout=self._client.timeout) if plain else {}
        others = [listed[group_id] for group_id in wanted if group_id not in futures]
        answers: dict[str, Group | KopsError] = {group.group_id: group for group in others}
        if others:
            from kops.gateways.kafka.groups.working import describe

            answers |= describe(self._wire, others)
        for group_id, future in futures.items():
            outcome = self._client.outcome(future, f"describe group {group_id}", again=partial(self._ask_to_describe, group_id))
            answers[group_id] = outcome if isinstance(outcome, KopsError) else _described(outcome, listed.get(group_id))
        return {group_id: answers[group_id] for group_id in wanted}

    def _ask_to_describe(self, group_id: str, admin: AdminClient) -> Any:
        return admin.describe_consumer_groups([group_id], request_timeout=self._client.timeout)[group_id]

    def share_offsets(self, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, ShareOffset] | KopsError]:
        """Return where share groups are, by group, or why it is not known.

        :raises KopsError: when the brokers do not know the request, before Kafka 4.1, or do not answer
        """
        from kops.gateways.kafka.groups.working import share_offsets

        return share_offsets(self._wire, group_ids)

    def first_records(self, places: Iterable[Place], *, isolation: str) -> dict[Place, Answer]:
        from kops.gateways.kafka.groups.first_records import first_records

        return first_records(self._client, places, isolation=isolation)

    def delete(self, group_ids: Iterable[str]) -> dict[str, KopsError | None]:
        """Delete groups and their committed offsets; return the error of each, None if it is gone."""
        wanted = sorted(set(group_ids))
        futures = self._client.admin.delete_consumer_groups(wanted, request_timeout=self._client.timeout) if wanted else {}
        return self._client.errors(futures, "delete group")

    def _listed_by_librdkafka(self) -> list[Group]:
        visible = self._client.wait(self._client.admin.list_consumer_groups(request_timeout=self._client.timeout), "list the groups")
        known = {group.group_id: Group(group.group_id, kafka_words(group.state.name), group.type.name.lower()) for group in visible.valid}
        every = self._client.list_groups(timeout=self._client.timeout)
        return [known.get(group.id) or Group(group.id, "UNKNOWN", group.protocol_type or "unknown") for group in every]


def _described(answer: Any, listed: Group | None) -> Group | KopsError:
    """Combine the description of a group with its entry in the list of groups."""
    group = group_of(answer)
    if listed is None and group.state == "DEAD":
        return group_not_found(group.group_id)
    if listed is not None and group.state in ("DEAD", "UNKNOWN"):
        return replace(group, state=listed.state, type=listed.type)
    return group
