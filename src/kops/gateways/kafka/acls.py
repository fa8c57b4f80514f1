"""ACLs. confluent-kafka knows neither delegation tokens nor users as resources, nor two-phase commit, so kafka-python asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.acls.models import ALL, ALLOW, DENY, LITERAL, MATCH, PREFIXED, Acl, Filter
from kops.core.errors import KopsError, SecurityDisabled
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate_kafka_python
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_ANY, _MATCH = 1, 2
TYPES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
PATTERNS = {3: LITERAL, 4: PREFIXED}
PERMISSIONS = {2: DENY, 3: ALLOW}
OPERATIONS = dict(
    enumerate(
        (
            *(ALL, "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
            *("IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
        ),
        start=2,
    )
)
"""Kafka's names by the codes of its protocol (``ResourceType``, ``PatternType``, ``AclPermissionType``, ``AclOperation``)."""
_CODE_OF = {name: code for names in (TYPES, PATTERNS, PERMISSIONS, OPERATIONS) for code, name in names.items()}


class Acls:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def all(self) -> list[Acl]:
        """Return every ACL, sorted, as :meth:`matching` does."""
        return self.matching(Filter())

    def matching(self, filters: Filter) -> list[Acl]:
        """Return the ACLs that a filter accepts, sorted; brokers leave out most others. Needs DESCRIBE on the cluster.

        :raises SecurityDisabled: when the brokers have no authorizer
        """
        answer = self._wire.ask("list the ACLs", partial(_ask_for, filters), patient=True)
        found = (
            Acl(
                one["principal"],
                _name(PERMISSIONS, one["permission_type"]),
                _name(OPERATIONS, one["operation"]),
                _name(TYPES, place["resource_type"]),
                place["resource_name"],
                _name(PATTERNS, place["pattern_type"]),
                one["host"],
            )
            for place in answer["resources"]
            for one in place["acls"]
        )
        return sorted(acl for acl in found if filters.accepts(acl))

    def are_enforced(self) -> bool:
        """Whether the brokers have an authorizer; True if that is not known."""
        try:
            self.matching(Filter(type="topic", name="kops"))
        except SecurityDisabled:
            return False
        except KopsError:
            return True
        return True

    def create(self, acls: Sequence[Acl]) -> dict[Acl, KopsError]:
        """Create ACLs; return the errors. Needs ALTER on the cluster."""
        answer = self._wire.ask("create ACLs", partial(_ask_to_create, acls))
        return self._errors("create ACLs", acls, answer["results"])

    def delete(self, acls: Sequence[Acl]) -> dict[Acl, KopsError]:
        """Delete exactly these ACLs; return the errors. Needs ALTER on the cluster."""
        answer = self._wire.ask("delete ACLs", partial(_ask_to_delete, acls))
        return self._errors("delete ACLs", acls, answer["filter_results"])

    def _errors(self, doing: str, acls: Sequence[Acl], results: Sequence[Mapping[str, Any]]) -> dict[Acl, KopsError]:
        from kafka.errors import for_code

        found = {}
        for acl, result in zip(acls, results, strict=True):
            each = [result, *(result.get("matching_acls") or ())]
            if bad := next((one for one in each if one["error_code"]), None):
                kind = for_code(bad["error_code"])
                error = kind(bad["error_message"]) if bad["error_message"] else kind
                found[acl] = translate_kafka_python(error, f"{doing} ({acl})", self._client.connection.bootstrap_servers)
        return found


def _name(names: Mapping[int, str], code: int) -> str:
    """Return a name; a code that a newer Kafka has added stays a number, and is shown as one."""
    return names.get(code, str(code))


def _code(name: str) -> int:
    return _CODE_OF[name] if name in _CODE_OF else int(name)


def _ask_for(filters: Filter, admin: KafkaAdminClient) -> dict[str, Any]:
    request = request_class("DescribeAclsRequest")
    return answer_of(
        admin,
        request(
            resource_type_filter=_code(filters.type) if filters.type else _ANY,
            resource_name_filter=filters.name,
            pattern_type_filter=_MATCH if filters.pattern == MATCH and filters.name is not None else _ANY,
            principal_filter=filters.principals[0] if len(filters.principals) == 1 else None,
            host_filter=filters.host,
            operation=_ANY,
            permission_type=_ANY,
        ),
    )


def _ask_to_create(acls: Sequence[Acl], admin: KafkaAdminClient) -> dict[str, Any]:
    request = request_class("CreateAclsRequest")
    creations = [
        request.AclCreation(
            resource_type=_code(acl.type),
            resource_name=acl.name,
            resource_pattern_type=_code(acl.pattern),
            principal=acl.principal,
            host=acl.host,
            operation=_code(acl.operation),
            permission_type=_code(acl.permission),
        )
        for acl in acls
    ]
    return answer_of(admin, request(creations=creations))


def _ask_to_delete(acls: Sequence[Acl], admin: KafkaAdminClient) -> dict[str, Any]:
    request = request_class("DeleteAclsRequest")
    filters = [
        request.DeleteAclsFilter(
            resource_type_filter=_code(acl.type),
            resource_name_filter=acl.name,
            pattern_type_filter=_code(acl.pattern),
            principal_filter=acl.principal,
            host_filter=acl.host,
            operation=_code(acl.operation),
            permission_type=_code(acl.permission),
        )
        for acl in acls
    ]
    return answer_of(admin, request(filters=filters))
