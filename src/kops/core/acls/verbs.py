"""Which rights each verb of kops needs, as a broker's authorizer is asked for them (``tests/broker/test_rights_of_verbs.py``). Pure."""

from __future__ import annotations

from collections.abc import Mapping

SILENT = "~"
"""Begins a right without which the brokers leave out what may not be described, without an error: the verb runs, and sees less."""

OF_VERBS: Mapping[str, tuple[str, ...]] = {
    "acls list": ("cluster DESCRIBE",),
    "acls audit": ("cluster DESCRIBE",),
    "acls export": ("cluster DESCRIBE",),
    "acls explain": ("cluster DESCRIBE", "~cluster DESCRIBE_CONFIGS"),
    "acls create": ("cluster ALTER", "~cluster DESCRIBE_CONFIGS"),
    "acls delete": ("cluster ALTER", "~cluster DESCRIBE_CONFIGS"),
    "acls grant": ("cluster ALTER", "~cluster DESCRIBE_CONFIGS"),
    "acls revoke": ("cluster ALTER", "~cluster DESCRIBE_CONFIGS"),
    "brokers alter": ("cluster ALTER_CONFIGS",),
    "brokers config": ("cluster DESCRIBE_CONFIGS",),
    "brokers list": ("cluster DESCRIBE",),
    "brokers describe": ("cluster DESCRIBE", "cluster DESCRIBE_CONFIGS"),
    "brokers log-dirs": ("cluster DESCRIBE",),
    "client-metrics list": ("cluster DESCRIBE_CONFIGS",),
    "client-metrics set": ("cluster ALTER_CONFIGS",),
    "client-metrics delete": ("cluster ALTER_CONFIGS",),
    "cluster api-versions": (),
    "cluster brokers": ("cluster DESCRIBE",),
    "cluster describe": ("cluster DESCRIBE",),
    "cluster features list": (),
    "cluster quorum show": ("cluster DESCRIBE",),
    "groups list": ("~cluster DESCRIBE",),
    "groups describe": ("~cluster DESCRIBE", "group DESCRIBE"),
    "groups lag": ("~cluster DESCRIBE", "group DESCRIBE", "topic READ"),
    "groups delete": ("~cluster DESCRIBE", "group DELETE", "~topic DESCRIBE"),
    "groups config": ("group DESCRIBE_CONFIGS",),
    "groups alter": ("group ALTER_CONFIGS",),
    "offsets show": ("~cluster DESCRIBE", "group DESCRIBE", "~topic DESCRIBE"),
    "offsets export": ("~cluster DESCRIBE", "group DESCRIBE", "~topic DESCRIBE"),
    "offsets reset": ("~cluster DESCRIBE", "group READ", "topic READ"),
    "offsets seek": ("~cluster DESCRIBE", "group READ", "topic READ"),
    "offsets copy": ("~cluster DESCRIBE", "group READ", "~topic DESCRIBE_CONFIGS", "topic READ"),
    "offsets delete": ("~cluster DESCRIBE", "group DELETE", "topic READ"),
    "quotas list": ("cluster DESCRIBE_CONFIGS",),
    "quotas explain": ("cluster DESCRIBE_CONFIGS",),
    "quotas set": ("cluster ALTER_CONFIGS",),
    "quotas remove": ("cluster ALTER_CONFIGS",),
    "records consume": ("topic READ",),
    "records produce": ("~cluster IDEMPOTENT_WRITE", "~topic DESCRIBE_CONFIGS", "topic WRITE"),
    "topics list": ("~topic DESCRIBE",),
    "topics describe": ("cluster DESCRIBE", "group DESCRIBE", "topic DESCRIBE", "topic DESCRIBE_CONFIGS"),
    "topics offsets": ("topic DESCRIBE", "~topic DESCRIBE_CONFIGS"),
    "topics create": ("topic CREATE", "~cluster DESCRIBE_CONFIGS", "topic DESCRIBE", "topic DESCRIBE_CONFIGS"),
    "topics alter": ("topic ALTER_CONFIGS", "topic DESCRIBE"),
    "topics add-partitions": ("~cluster DESCRIBE", "group DESCRIBE", "topic ALTER", "topic DESCRIBE_CONFIGS"),
    "topics truncate": ("~cluster DESCRIBE", "group DESCRIBE", "topic DELETE", "topic DESCRIBE_CONFIGS"),
    "topics delete": ("~cluster DESCRIBE", "topic DELETE", "group DESCRIBE", "topic DESCRIBE_CONFIGS"),
    "topics reassignments": ("cluster DESCRIBE",),
    "transactions producers": ("topic READ",),
    "users list": ("cluster DESCRIBE",),
    "users create": ("cluster ALTER",),
    "users delete": ("cluster ALTER",),
}
"""By verb, type of resource and operation: of the topics and groups that it is given, or of the cluster."""


def as_entry(right: str) -> tuple[str, str]:
    """Return type of resource and operation of a right in the table."""
    kind, operation = right.removeprefix(SILENT).split()
    return kind, operation
