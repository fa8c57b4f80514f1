"""Members removed from groups: by LeaveGroup from classic ones (KIP-345), by a last heartbeat from those of newer protocols (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, answer_or_error
from kops.core.models import Group, Member
from kops.gateways.kafka.admin import Wire
from kops.gateways.kafka.groups.messages import (
    CONSUMER_GROUP_HEARTBEAT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    ask_coordinators,
    leaving,
)
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

HEARTBEATS = {"consumer": CONSUMER_GROUP_HEARTBEAT, "share": SHARE_GROUP_HEARTBEAT, "streams": STREAMS_GROUP_HEARTBEAT}
REASON = "removed by kops groups remove-members"


def remove(wire: Wire, group: Group, members: Sequence[Member]) -> dict[str, KopsError | None]:
    """Remove members from a group; return the error of each by its id, or None.

    :param group: as described
    """
    if group.type not in HEARTBEATS:
        doing = f"remove members of group {group.group_id}"
        found: dict[str, KopsError | None] = wire.ask(doing, partial(_leave, group.group_id, members))
        return found
    errors: dict[str, KopsError | None] = {}
    for one in members:
        doing = f"remove member {one.member_id} of group {group.group_id}"
        request = leaving(HEARTBEATS[group.type], group.group_id, one.member_id, one.group_instance_id)
        errors[one.member_id] = answer_or_error(partial(wire.ask, doing, partial(_beat, group.group_id, request, doing)))
    return errors


def _leave(group_id: str, members: Sequence[Member], admin: KafkaAdminClient) -> dict[str, KopsError | None]:
    from kafka.errors import for_code

    kind = request_class("LeaveGroupRequest")
    identities = [kind.MemberIdentity(member_id=one.member_id, group_instance_id=one.group_instance_id, reason=REASON) for one in members]
    ((_, answer),) = ask_coordinators(admin, [group_id], lambda some: kind(group_id=some[0], members=identities, min_version=3))
    if answer.error_code:
        raise for_code(answer.error_code)
    return {
        one.member_id: translate_error_code(found.error_code, None, f"remove member {one.member_id} of group {group_id}")
        for one, found in zip(members, answer.members, strict=True)
    }


def _beat(group_id: str, request: Any, doing: str, admin: KafkaAdminClient) -> None:
    from kafka.errors import for_code

    ((_, answer),) = ask_coordinators(admin, [group_id], lambda _: request)
    if answer.error_code and for_code(answer.error_code).__name__ in ("NotCoordinatorError", "CoordinatorNotAvailableError"):
        raise for_code(answer.error_code)
    if error := translate_error_code(answer.error_code, answer.error_message, doing):
        raise error
