"""A command line for each verb whose rights ``kops acls grant --kops`` and docs/rights.md say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """How a verb is run.

    :param line: its words behind the verb; ``{topic}``, ``{new}``, ``{group}``, ``{folder}`` and ``{name}`` are filled in
    :param needs: what is made before each run: ``topic``, with records; ``group``, with offsets in it
    :param hides: the brokers leave out what may not be described, and no error says so
    """

    line: str
    needs: str = ""
    hides: bool = False


CASES = {
    "acls list": Case(""),
    "acls audit": Case(""),
    "acls export": Case(""),
    "acls explain": Case("User:a read topic:{topic}"),
    "acls create": Case("User:{name} --operation read --resource topic:{name} --yes"),
    "acls delete": Case("User:{name} --yes", "acl"),
    "acls grant": Case("User:{name} --produce {name} --yes"),
    "acls revoke": Case("User:{name} --produce {name} --yes", "acl"),
    "brokers alter": Case("1 --config log.retention.ms=10000{number} --yes"),
    "brokers config": Case("1"),
    "brokers list": Case(""),
    "brokers describe": Case("1"),
    "brokers log-dirs": Case("1"),
    "client-metrics list": Case(""),
    "client-metrics set": Case("{name} --metrics * --interval 10s --yes"),
    "client-metrics delete": Case("{name} --yes", "client-metrics"),
    "cluster api-versions": Case(""),
    "cluster brokers": Case(""),
    "cluster describe": Case(""),
    "cluster features list": Case(""),
    "cluster quorum show": Case(""),
    "groups list": Case("", "topic group", hides=True),
    "groups describe": Case("{group}", "topic group"),
    "groups lag": Case("{group} -o json", "topic group"),
    "groups delete": Case("{group} --yes --confirm {group}", "topic group"),
    "groups config": Case("{group}", "topic group"),
    "groups alter": Case("{group} --config consumer.session.timeout.ms=50000 --yes", "topic group"),
    "offsets show": Case("{group}", "topic group"),
    "offsets export": Case("{group}", "topic group"),
    "offsets reset": Case("{group} --to-latest --all-topics --yes", "topic group"),
    "offsets seek": Case("{group} {topic}:0=1 --yes", "topic group"),
    "offsets copy": Case("{group} {group}-2 --new-group --yes", "topic group"),
    "offsets delete": Case("{group} --topic {topic} --yes --confirm {group}", "topic group"),
    "quotas list": Case(""),
    "quotas explain": Case("--user a"),
    "quotas set": Case("producer_byte_rate=1000000 --user {name} --yes"),
    "quotas remove": Case("--user {name} --yes", "quota"),
    "records consume": Case("{topic} start..end", "topic"),
    "records produce": Case("{topic} --value x", "topic"),
    "topics list": Case("", "topic", hides=True),
    "topics describe": Case("{topic}", "topic"),
    "topics offsets": Case("{topic}", "topic"),
    "topics create": Case("{new} --partitions 1 --yes"),
    "topics alter": Case("{topic} --config retention.ms=1000000 --yes", "topic"),
    "topics add-partitions": Case("{topic} --partitions 2 --yes", "topic"),
    "topics truncate": Case("{topic} --to end --yes --confirm {topic}", "topic"),
    "topics delete": Case("{topic} --yes --confirm {topic}", "topic"),
    "topics reassignments": Case(""),
    "transactions producers": Case("{topic}", "topic"),
    "users list": Case(""),
    "users create": Case("{name} --password-file {folder}/password --yes"),
    "users delete": Case("{name} --yes --confirm {name}", "user"),
}

MADE = {
    "topic": ("topics create {topic} --partitions 1 --replication-factor 1 --yes", "records produce {topic} --value x"),
    "group": ("offsets seek {group} {topic}:0=0 --new-group --yes",),
    "acl": ("acls grant User:{name} --produce {name} --yes",),
    "quota": ("quotas set producer_byte_rate=1000000 --user {name} --yes",),
    "user": ("users create {name} --password-file {folder}/password --yes",),
    "client-metrics": ("client-metrics set {name} --metrics * --interval 10s --yes",),
}
"""What makes each need, as the super user."""
DONE = (0, 1, 7)
"""Exit codes of commands that did their work: 1 and 7 say what they found, such as drift or a denial."""
