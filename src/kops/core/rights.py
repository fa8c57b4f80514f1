"""Which right on which resource a request needs, so that an authorization error names the missing ACL. Pure.

The operations are those that the brokers check (``KafkaApis``; the table "Operations and resources on protocols" of Kafka's
documentation). The request is recognized by its description.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kops.core.errors import AuthorizationFailed, KopsError

_KINDS = {"TOPIC": "topic", "GROUP": "group", "CLUSTER": "the cluster", "TRANSACTIONAL": "transactional id", "DELEGATION": "user"}
_PARTITION = r"(?P<name>[A-Za-z0-9._-]+):\d+"
_TOPIC = r"(?P<name>[A-Za-z0-9._-]+)"
_GROUP = r"group (?P<name>.+?)(?: \([^()]*:\d+\))?$"
_RULES: tuple[tuple[str, str, str], ...] = (
    ("topic", rf"^describe topic {_TOPIC}$", "DESCRIBE"),
    ("topic", rf"^describe the settings of topic {_TOPIC}$", "DESCRIBE_CONFIGS"),
    ("topic", rf"^(?:change|alter) .*topic {_TOPIC}$", "ALTER_CONFIGS"),
    ("topic", rf"^create topic {_TOPIC}$", "CREATE"),
    ("topic", rf"^delete topic {_TOPIC}$", "DELETE"),
    ("topic", rf"^add partitions to topic {_TOPIC}$", "ALTER"),
    ("topic", rf"^delete records of {_PARTITION}$", "DELETE"),
    ("topic", rf"^find .* of {_PARTITION}$", "DESCRIBE"),
    ("topic", rf"^read the committed offset.*?[ (]{_PARTITION}", "DESCRIBE"),
    ("topic", rf"^(?:read|fetching) {_PARTITION}", "READ"),
    ("topic", rf"^Not authorized to access topics: \[{_TOPIC}[],]", "READ"),
    ("topic", rf"^(?:move|delete) the start offsets of .* in {_TOPIC}$", "READ"),
    ("topic", rf"^list the producers of {_PARTITION}$", "READ"),
    ("topic", rf"^produce to {_TOPIC}", "WRITE"),
    ("topic", rf"^(?:commit|delete committed offsets) .*?\(?{_PARTITION}", "READ"),
    ("group", rf"^describe the settings of {_GROUP}", "DESCRIBE_CONFIGS"),
    ("group", rf"^alter {_GROUP}", "ALTER_CONFIGS"),
    ("group", rf"^describe (?:the offsets of )?(?:{_GROUP}|share groups$)", "DESCRIBE"),
    ("group", rf"^remove members? .*{_GROUP}", "READ"),
    ("group", rf"^move the start offsets of {_GROUP}", "READ"),
    ("group", rf"^delete the start offsets of {_GROUP}", "DELETE"),
    ("group", rf"^read the committed offsets? .*?{_GROUP}", "DESCRIBE"),
    ("group", rf"^delete {_GROUP}", "DELETE"),
    ("group", rf"^delete committed offsets of {_GROUP}", "DELETE"),
    ("group", rf"^commit .*?{_GROUP}", "READ"),
    ("group", r"^(?:read as|commit for) (?P<name>.+)$", "READ"),
    ("the cluster", r"^(?:describe|list) the (?:settings of|client quotas)", "DESCRIBE_CONFIGS"),
    ("the cluster", r"^alter the SCRAM", "ALTER"),
    ("the cluster", r"^alter ", "ALTER_CONFIGS"),
    ("the cluster", r"^(?:reassign|elect|move|unregister|set levels|check the levels|abort)", "ALTER"),
    ("the cluster", r"^(?:describe|list|ask)", "DESCRIBE"),
    ("the cluster", r"^(?:create|delete) ACLs", "ALTER"),
    ("the cluster", r"^create topic", "CREATE"),
    ("the cluster", r"^produce to", "IDEMPOTENT_WRITE"),
    ("transactional id", r"^describe", "DESCRIBE"),
    ("transactional id", r"^use transactional id (?P<name>.+)$", "WRITE"),
    ("transactional id", r"^abort .* transactional id (?P<name>.+)$", "WRITE"),
    ("user", r"^create a token of (?P<name>\w+:.+)$", "CREATE_TOKENS"),
)


@dataclass(frozen=True)
class Right:
    """A missing right.

    :param operation: Kafka's name, as ``kafka-acls --operation`` takes it
    :param resource: ``topic orders``, ``group billing``, ``the cluster``
    """

    operation: str
    resource: str

    @property
    def hint(self) -> str:
        return f"the principal of this context needs {self}; ask for that ACL"

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"

    def lacking(self, said: str, **details: str) -> AuthorizationFailed:
        """Return the error for a request that was denied for want of this right; the message gets the right added."""
        return AuthorizationFailed(f"{said} (lacks {self})", hint=self.hint, needs=str(self), **details)


def missing_right(error: str, doing: str) -> Right | None:
    """Return the right that a denied request needs; None if unknown.

    :param error: Kafka's name: ``GROUP_AUTHORIZATION_FAILED`` or ``GroupAuthorizationFailedError``
    :param doing: what was being done: ``describe group billing``
    """
    doing = re.sub(r"^\[Error \d+\] \w+: ", "", doing)  # as kafka-python's errors begin
    kind = next((kind for word, kind in _KINDS.items() if error.upper().startswith(word)), None)
    for of, pattern, operation in _RULES:
        match = re.search(pattern, doing) if of == kind else None
        if match:
            name = match.groupdict().get("name")
            return Right(operation, f"{kind} {name}" if name else str(kind))
    return None


def reason(error: KopsError) -> str:
    """Summarize an error: the missing right if known, otherwise its message."""
    needs = error.details.get("needs")
    return f"lacks {needs}" if needs else error.message
