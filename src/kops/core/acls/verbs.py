"""Which rights each verb of kops needs, as a broker's authorizer is asked for them (``tests/broker/test_rights_of_verbs.py``). Pure."""

from __future__ import annotations

from collections.abc import Mapping

SILENT = "~"
"""Begins a right without which the brokers leave out what may not be described, without an error: the verb runs, and sees less."""

_TABLE = {
    "acls audit": "cluster DESCRIBE",
    "acls create": "cluster ALTER, ~cluster DESCRIBE_CONFIGS",
    "acls delete": "cluster ALTER, ~cluster DESCRIBE_CONFIGS",
    "acls explain": "cluster DESCRIBE, ~cluster DESCRIBE_CONFIGS",
    "acls export": "cluster DESCRIBE",
    "acls grant": "cluster ALTER, ~cluster DESCRIBE_CONFIGS",
    "acls list": "cluster DESCRIBE",
    "acls revoke": "cluster ALTER, ~cluster DESCRIBE_CONFIGS",
    "brokers alter": "cluster ALTER_CONFIGS",
    "brokers config": "cluster DESCRIBE_CONFIGS",
    "brokers demote": "cluster ALTER, topic DESCRIBE",
    "brokers describe": "cluster DESCRIBE, cluster DESCRIBE_CONFIGS, topic DESCRIBE",
    "brokers drain": "cluster ALTER, topic DESCRIBE",
    "brokers list": "cluster DESCRIBE, topic DESCRIBE",
    "brokers log-dirs": "cluster DESCRIBE",
    "brokers move-replicas": "cluster ALTER, topic DESCRIBE",
    "changelog get": "topic DESCRIBE_CONFIGS, topic READ",
    "changelog history": "topic DESCRIBE_CONFIGS, topic READ",
    "changelog inspect": "topic DESCRIBE_CONFIGS, topic READ",
    "changelog list": "cluster DESCRIBE, ~topic DESCRIBE input, topic DESCRIBE_CONFIGS changelog, topic READ changelog",
    "changelog stats": "topic DESCRIBE_CONFIGS, topic READ",
    "client-metrics delete": "cluster ALTER_CONFIGS",
    "client-metrics list": "cluster DESCRIBE_CONFIGS",
    "client-metrics set": "cluster ALTER_CONFIGS",
    "cluster api-versions": "",
    "cluster apply": "~cluster DESCRIBE_CONFIGS, topic CREATE, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "cluster brokers": "cluster DESCRIBE, topic DESCRIBE",
    "cluster describe": "cluster DESCRIBE",
    "cluster diff": "~cluster DESCRIBE_CONFIGS, topic CREATE, ~topic DESCRIBE_CONFIGS",
    "cluster export": "cluster DESCRIBE, cluster DESCRIBE_CONFIGS, group DESCRIBE_CONFIGS, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "cluster features downgrade": "cluster ALTER",
    "cluster features list": "",
    "cluster features upgrade": "cluster ALTER",
    "cluster health": "cluster DESCRIBE, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "cluster quorum show": "cluster DESCRIBE",
    "connect list": "",
    "connect status": "topic DESCRIBE",
    "connect describe": "",
    "connect validate": "topic DESCRIBE",
    "connect diff": "",
    "connect apply": "topic DESCRIBE",
    "connect apply --create-topics": "topic CREATE, ~cluster DESCRIBE_CONFIGS, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "connect alter": "topic DESCRIBE",
    "connect delete": "",
    "connect offsets show": "~topic DESCRIBE",
    "connect offsets alter": "topic DESCRIBE",
    "connect offsets reset": "",
    "context test": "",
    "diagnose": (
        "cluster DESCRIBE, cluster DESCRIBE_CONFIGS, group DESCRIBE, topic DESCRIBE_CONFIGS, topic READ, topic READ __consumer_offsets"
    ),
    "groups alter": "group ALTER_CONFIGS",
    "groups config": "group DESCRIBE_CONFIGS",
    "groups delete": "cluster DESCRIBE, group DELETE, topic DESCRIBE",
    "groups describe": "~cluster DESCRIBE, group DESCRIBE",
    "groups lag": "~cluster DESCRIBE, group DESCRIBE, topic READ",
    "groups lag --no-time": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "groups lag --within": "~cluster DESCRIBE, group DESCRIBE, topic DESCRIBE_CONFIGS, topic READ",
    "groups list": "~cluster DESCRIBE",
    "groups remove-members": "~cluster DESCRIBE, group READ",
    "offsets copy": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ",
    "offsets delete": "~cluster DESCRIBE, group DELETE, topic READ",
    "offsets edit": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ",
    "offsets export": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "offsets history": "topic READ __consumer_offsets",
    "offsets reset": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ",
    "offsets reset --to-history": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ, topic READ __consumer_offsets",
    "offsets seek": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ",
    "offsets show": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "quotas explain": "cluster DESCRIBE_CONFIGS",
    "quotas list": "cluster DESCRIBE_CONFIGS",
    "quotas remove": "cluster ALTER_CONFIGS",
    "quotas set": "cluster ALTER_CONFIGS",
    "records consume": "topic READ",
    "records consume --group": "~cluster DESCRIBE, group READ, topic READ",
    "records dead-letters": "topic READ",
    "records peek": "~cluster DESCRIBE, group DESCRIBE, topic READ",
    "records produce": "~cluster IDEMPOTENT_WRITE, ~topic DESCRIBE_CONFIGS, topic WRITE",
    "replay archive": "~cluster DESCRIBE, group DESCRIBE, topic DESCRIBE_CONFIGS, topic READ",
    "replay redrive": (
        "~cluster IDEMPOTENT_WRITE, ~group DELETE kops-redrive-*, group READ kops-redrive-*, topic READ, "
        "topic DESCRIBE_CONFIGS target, topic WRITE target, topic READ kops-progress, topic WRITE kops-progress, "
        "topic DESCRIBE_CONFIGS kops-progress, transactional-id WRITE kops-redrive-*"
    ),
    "replay restore": (
        "~cluster IDEMPOTENT_WRITE, ~group DELETE kops-replay-*, group READ kops-replay-*, topic DESCRIBE_CONFIGS target, "
        "topic WRITE target, topic READ kops-progress, topic WRITE kops-progress, topic DESCRIBE_CONFIGS kops-progress, "
        "transactional-id WRITE kops-replay-*, topic READ target"
    ),
    "replay run": (
        "~cluster IDEMPOTENT_WRITE, ~group DELETE kops-replay-*, group READ kops-replay-*, topic READ, "
        "topic DESCRIBE_CONFIGS target, topic WRITE target, topic WRITE kops-progress, topic DESCRIBE_CONFIGS kops-progress, "
        "transactional-id WRITE kops-replay-*"
    ),
    "share-groups delete": "~cluster DESCRIBE, group DELETE, ~topic DESCRIBE",
    "share-groups delete-offsets": "~cluster DESCRIBE, group DELETE, topic READ",
    "share-groups lag": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "share-groups reset": "~cluster DESCRIBE, group READ, ~topic DESCRIBE_CONFIGS, topic READ",
    "state diff": "~cluster DESCRIBE, group DESCRIBE, topic READ __consumer_offsets, topic READ, topic DESCRIBE_CONFIGS",
    "state init": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE, topic DESCRIBE_CONFIGS changelog",
    "state query": "topic READ changelog, topic DESCRIBE_CONFIGS changelog",
    "state query --from input": (
        "~cluster DESCRIBE, group DESCRIBE, ~topic READ __consumer_offsets, topic READ input, topic DESCRIBE changelog, "
        "topic DESCRIBE_CONFIGS"
    ),
    "state rebuild": (
        "~cluster DESCRIBE, group DESCRIBE, topic READ __consumer_offsets, topic READ, topic DESCRIBE_CONFIGS, "
        "~cluster IDEMPOTENT_WRITE, topic WRITE changelog"
    ),
    "state rebuild --write replace": (
        "~cluster DESCRIBE, group DESCRIBE, topic READ __consumer_offsets, topic READ, topic DESCRIBE_CONFIGS, "
        "~cluster IDEMPOTENT_WRITE, topic WRITE changelog, topic CREATE changelog, topic DELETE changelog"
    ),
    "state repartition": (
        "~cluster DESCRIBE, ~cluster IDEMPOTENT_WRITE, group READ, topic DESCRIBE input, topic READ target, "
        "topic CREATE changelog, topic DELETE changelog, topic DESCRIBE_CONFIGS changelog, topic READ changelog, "
        "topic WRITE changelog"
    ),
    "state restore": (
        "~cluster DESCRIBE, group READ, topic READ, topic DESCRIBE_CONFIGS changelog, topic WRITE changelog, ~cluster IDEMPOTENT_WRITE"
    ),
    "state snapshot": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE input, topic DESCRIBE_CONFIGS changelog, topic READ changelog",
    "state verify": "~cluster DESCRIBE, group DESCRIBE, topic READ __consumer_offsets, topic READ, topic DESCRIBE_CONFIGS",
    "streams delete": "~cluster DESCRIBE, group DELETE, topic DELETE changelog, ~topic DESCRIBE input, topic DESCRIBE_CONFIGS changelog",
    "streams describe": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "streams list": "~cluster DESCRIBE, group DESCRIBE, ~topic DESCRIBE",
    "streams reset": "~cluster DESCRIBE, group READ, topic DELETE changelog, topic DESCRIBE_CONFIGS, topic READ input",
    "tokens create": "",
    "tokens create --owner": "user CREATE_TOKENS",
    "tokens expire": "",
    "tokens list": "",
    "tokens renew": "",
    "topics add-partitions": "~cluster DESCRIBE, group DESCRIBE, topic ALTER, topic DESCRIBE_CONFIGS",
    "topics alter": "topic ALTER_CONFIGS, topic DESCRIBE",
    "topics apply": "topic CREATE, ~cluster DESCRIBE_CONFIGS, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics create": "topic CREATE, ~cluster DESCRIBE_CONFIGS, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics delete": "~cluster DESCRIBE, topic DELETE, group DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics describe": "cluster DESCRIBE, group DESCRIBE, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics diff": "",
    "topics elect-leaders": "cluster ALTER, topic DESCRIBE",
    "topics list": "~topic DESCRIBE",
    "topics list --long": "cluster DESCRIBE, ~topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics offsets": "topic DESCRIBE, ~topic DESCRIBE_CONFIGS",
    "topics reassign": "cluster ALTER, topic DESCRIBE, topic DESCRIBE_CONFIGS",
    "topics reassignments": "cluster DESCRIBE",
    "topics truncate": "~cluster DESCRIBE, group DESCRIBE, topic DELETE, topic DESCRIBE_CONFIGS",
    "transactions abort": "~topic DESCRIBE, transactional-id WRITE",
    "transactions describe": "~topic DESCRIBE, transactional-id DESCRIBE",
    "transactions list": "~topic DESCRIBE, ~transactional-id DESCRIBE",
    "transactions list --open": "topic READ, ~transactional-id DESCRIBE",
    "transactions producers": "topic READ",
    "users alter": "cluster ALTER",
    "users create": "cluster ALTER",
    "users delete": "cluster ALTER",
    "users list": "cluster DESCRIBE",
}
OF_VERBS: Mapping[str, tuple[str, ...]] = {verb: tuple(filter(None, rights.split(", "))) for verb, rights in _TABLE.items()}
"""By verb, type of resource and operation: of the topics and groups that it is given, or of the cluster. Behind a verb stand options with
which it needs more or less. A third word is the resource where it is another (``kops-progress``; with ``*`` those that begin so), or one of
``ROLES``, where not every topic that is given needs it."""

ROLES = ("source", "target", "input", "changelog")
"""Of changelogs: also of topics that begin with the name, which take their place for a while."""


def as_entry(right: str) -> tuple[str, str, str]:
    """Return type of resource, operation, and resource or role of a right in the table; empty: of all that are given."""
    kind, operation, place = f"{right.removeprefix(SILENT)} ".split(" ")[:3]
    return kind, operation, place
