"""A command line for each verb whose rights ``kops acls grant --kops`` and docs/rights.md say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """How a verb is run.

    :param line: its words behind the verb; names such as ``{topic}`` are filled in
    :param needs: what is made before each run: keys of ``MADE``, or what the test makes itself
    :param roles: by the word that ends a right in the table, the topics that it is about; all those of the line have one
    :param brokers: how many the cluster has
    :param all_groups: whether it looks at every group
    :param all_topics: whether it looks at every topic, and names those that may not be described
    :param last: rights that only its last part needs, when others are done: it is partial then
    """

    line: str
    needs: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 1
    all_groups: bool = False
    all_topics: bool = False
    last: tuple[str, ...] = ()


SPARK = "--master local[1]"
COPIES = {"source": "{topic}", "target": "{target}"}
APPLICATION = {"input": "{input}", "changelog": "{changelog}"}
FORMATS = "--key string --value long"

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
    "brokers list": Case("", "topic", all_topics=True),
    "brokers describe": Case("1", "topic", all_topics=True),
    "brokers log-dirs": Case("1"),
    "client-metrics list": Case(""),
    "client-metrics set": Case("{name} --metrics * --interval 10s --yes"),
    "client-metrics delete": Case("{name} --yes", "client-metrics"),
    "cluster api-versions": Case(""),
    "cluster brokers": Case("", "topic", all_topics=True),
    "cluster describe": Case(""),
    "cluster features list": Case(""),
    "cluster quorum show": Case(""),
    "groups list": Case("", "topic group"),
    "groups describe": Case("{group}", "topic group"),
    "groups lag": Case("{group} -o json", "topic group"),
    "groups delete": Case("{group} --yes --confirm {group}", "topic group"),
    "groups config": Case("{group}", "topic group"),
    "groups alter": Case("{group} --config consumer.session.timeout.ms=50000 --yes", "topic group"),
    "offsets show": Case("{group}", "topic group"),
    "offsets export": Case("{group}", "topic group"),
    "offsets reset": Case("{group} --shift-by 1 --all-topics --yes", "topic more group"),
    "offsets seek": Case("{group} {topic}:0=1 --yes", "topic more group"),
    "offsets copy": Case("{group} {group}-2 --new-group --yes", "topic group"),
    "offsets delete": Case("{group} --topic {topic} --yes --confirm {group}", "topic group"),
    "quotas list": Case(""),
    "quotas explain": Case("--user a"),
    "quotas set": Case("producer_byte_rate=1000000 --user {name} --yes"),
    "quotas remove": Case("--user {name} --yes", "quota"),
    "records consume": Case("{topic} start..end", "topic"),
    "records produce": Case("{topic} --value x", "topic"),
    "topics list": Case("", "topic"),
    "topics describe": Case("{topic}", "topic", all_groups=True),
    "topics offsets": Case("{topic}", "topic"),
    "topics create": Case("{new} --partitions 1 --yes"),
    "topics alter": Case("{topic} --config retention.ms=1000000 --yes", "topic"),
    "topics add-partitions": Case("{topic} --partitions 2 --yes", "topic", all_groups=True),
    "topics truncate": Case("{topic} --to end --yes --confirm {topic}", "topic", all_groups=True),
    "topics delete": Case("{topic} --yes --confirm {topic}", "topic", all_groups=True),
    "topics reassignments": Case(""),
    "transactions producers": Case("{topic}", "topic"),
    "users list": Case(""),
    "users create": Case("{name} --password-file {folder}/password --yes"),
    "users delete": Case("{name} --yes --confirm {name}", "user"),
    "diagnose": Case("{group} --sample 0s", "topic group"),
    "connect list": Case("", "topic connector"),
    "connect status": Case("{name}", "topic connector"),
    "connect describe": Case("{name}", "topic connector"),
    "connect validate": Case("{folder}/{name}.yaml", "topic connector"),
    "connect diff": Case("{folder}/{name}.yaml", "topic connector"),
    "connect apply": Case("{folder}/{name}.yaml --yes", "topic connector"),
    "connect apply --create-topics": Case("{folder}/{name}.yaml --yes", "topic connector missing"),
    "connect alter": Case("{name} --config tasks.max=2 --yes", "topic connector"),
    "connect delete": Case("{name} --confirm {name}", "topic connector"),
    "connect offsets show": Case("{name}", "topic connector"),
    "connect offsets alter": Case("{name} {topic}:0=0 --yes", "topic connector"),
    "connect offsets reset": Case("{name} --yes --confirm {name}", "topic connector"),
    "cluster export": Case("{folder}/{name}", "topic group setting", all_groups=True, all_topics=True),
    "cluster diff": Case("{folder}/{name}", "folder"),
    "cluster apply": Case("{folder}/{name} --yes", "folder"),
    "cluster features downgrade": Case("group.version=0 --yes", "features"),
    "cluster features upgrade": Case("group.version=1 --yes", "no-features"),
    "cluster health": Case("", "topic", all_topics=True),
    "context test": Case(""),
    "brokers demote": Case("1 --yes", "leaders", brokers=3, all_topics=True),
    "brokers drain": Case("3 --yes", "leaders", brokers=3, all_topics=True),
    "brokers move-replicas": Case("1 {topic} --to {directory} --yes", "topic directory"),
    "topics apply": Case("{folder}/{name}.yaml --yes", "file"),
    "topics diff": Case("{folder}/{name}.yaml", "file"),
    "topics elect-leaders": Case("{topic} --yes", "leaders turned", brokers=3),
    "topics reassign": Case("{topic} --replication-factor 2 --yes", "topic", brokers=3),
    "topics list --long": Case("", "topic"),
    "groups lag --within": Case("1h {group} -o json", "topic group"),
    "groups lag --no-time": Case("{group} -o json", "topic group"),
    "groups remove-members": Case("{group} --all --yes --confirm {group}", "topic member"),
    "offsets edit": Case("{group} --yes", "topic more group"),
    "offsets history": Case("{group}", "topic group"),
    "offsets reset --to-history": Case("@{before} {group} --all-topics --yes", "topic group moved"),
    "records consume --group": Case("{group} {topic} --limit 1", "topic group"),
    "records dead-letters": Case("{topic} --count", "topic"),
    "records peek": Case("{group}", "topic group"),
    "share-groups lag": Case("{group}", "topic share"),
    "share-groups reset": Case("{group} --to start --yes", "topic share"),
    "share-groups delete-offsets": Case("{group} --topic {topic} --confirm {group}", "topic share"),
    "share-groups delete": Case("{group} --confirm {group}", "topic share"),
    "transactions list": Case("", "topic transaction"),
    "transactions list --open": Case("--topic {topic}", "topic transaction"),
    "transactions describe": Case("{name}", "topic transaction"),
    "transactions abort": Case("--transactional-id {name} --confirm {name}", "topic transaction"),
    "tokens list": Case("", "token"),
    "tokens renew": Case("{token} --yes", "token"),
    "tokens expire": Case("{token} --in 1h --yes", "token"),
    "tokens create": Case("--to {folder}/{new} --yes"),
    "tokens create --owner": Case("User:{name} --to {folder}/{new} --yes"),
    "users alter": Case("{name} --password-file {folder}/password --confirm {name}", "user"),
    "streams list": Case("", "application", all_groups=True),
    "streams describe": Case("{application}", "application"),
    "streams reset": Case("{application} --yes --confirm {application}", "application", APPLICATION, all_groups=True),
    "streams delete": Case("{application} --yes --confirm {application}", "application", APPLICATION, all_groups=True),
    "changelog list": Case("{application}", "application", APPLICATION),
    "changelog inspect": Case(f"{{changelog}} {FORMATS}", "application", {"changelog": "{changelog}"}),
    "changelog get": Case(f"{{changelog}} a {FORMATS}", "application", {"changelog": "{changelog}"}),
    "changelog history": Case(f"{{changelog}} a {FORMATS}", "application", {"changelog": "{changelog}"}),
    "changelog stats": Case(f"{{changelog}} {FORMATS}", "application", {"changelog": "{changelog}"}),
    "state init": Case("{application}", "application", APPLICATION),
    "state verify": Case(f"{{folder}}/{{name}}.yaml {SPARK}", "application", APPLICATION),
    "state diff": Case(f"{{folder}}/{{name}}.yaml {SPARK}", "application", APPLICATION),
    "state query": Case("{folder}/{name}.yaml a", "application", APPLICATION),
    "state query --from input": Case(f"{{folder}}/{{name}}.yaml a {SPARK}", "application", APPLICATION),
    "state rebuild": Case(f"{{folder}}/{{name}}.yaml --yes {SPARK}", "application", APPLICATION),
    "state rebuild --write replace": Case(
        f"{{folder}}/{{name}}.yaml --damaged totals --confirm {{changelog}} {SPARK}", "application", APPLICATION
    ),
    "state snapshot": Case(f"{{folder}}/{{name}}.yaml --to {{folder}}/{{new}} {SPARK}", "application", APPLICATION),
    "state restore": Case(f"{{folder}}/{{new}} --yes {SPARK}", "application snapshot disturbed", APPLICATION, last=("group READ",)),
    "state repartition": Case(
        f"{{folder}}/{{name}}.yaml --partitions 2 --input {{input}}={{target}} --confirm {{application}} {SPARK}",
        "application target-2",
        {**APPLICATION, "target": "{target}"},
        last=("group READ", "topic READ target"),
    ),
    "replay run": Case(f"{{topic}} --to {{target}} --yes {SPARK}", "topic target progress", COPIES),
    "replay archive": Case(f"{{topic}} --to {{folder}}/{{new}} {SPARK}", "topic", all_groups=True),
    "replay restore": Case(f"{{folder}}/{{new}} --to {{target}} --yes {SPARK}", "topic archive target progress", COPIES),
    "replay redrive": Case(f"{{topic}} --to-topics {{target}} --yes {SPARK}", "dead target progress", COPIES),
}

MADE = {
    "topic": ("topics create {topic} --partitions 1 --replication-factor 1 --yes", "records produce {topic} --value x"),
    "more": ("records produce {topic} --value y",),
    "group": ("offsets seek {group} {topic}:0=0 --new-group --yes",),
    "acl": ("acls grant User:{name} --produce {name} --yes",),
    "quota": ("quotas set producer_byte_rate=1000000 --user {name} --yes",),
    "user": ("users create {name} --password-file {folder}/password --yes",),
    "leaders": ("topics create {topic} --partitions 3 --replication-factor 2 --yes",),
    "setting": ("groups alter {group} --config consumer.session.timeout.ms=50000 --yes",),
    "features": ("cluster features upgrade group.version=1 --yes",),
    "no-features": ("cluster features downgrade group.version=0 --yes",),
    "target": ("topics create {target} --partitions 1 --replication-factor 1 --yes",),
    "target-2": ("topics create {target} --partitions 2 --replication-factor 1 --yes", "records produce {target} --key a --value x"),
    "progress": (
        "topics create kops-progress --partitions 1 --replication-factor 1 --config cleanup.policy=compact --if-not-exists --yes",
    ),
    "application": (
        "topics create {input} --partitions 1 --replication-factor 1 --yes",
        "topics create {changelog} --partitions 1 --replication-factor 1 --config cleanup.policy=compact --yes",
        "records produce {input} --key a --value x",
        "records produce {changelog} --key a --value 5 --value-format long",
        "offsets seek {application} {input}:0=end --new-group --yes",
    ),
    "snapshot": (f"state snapshot {{folder}}/{{name}}.yaml --to {{folder}}/{{new}} {SPARK}",),
    "disturbed": (
        "records produce {changelog} --key a --value 9 --value-format long",
        "offsets seek {application} {input}:0=0 --yes",
    ),
    "archive": (f"replay archive {{topic}} --to {{folder}}/{{new}} {SPARK}",),
    "dead": (
        "topics create {topic} --partitions 1 --replication-factor 1 --yes",
        "records produce {topic} --value x --header __connect.errors.topic={target} --header __connect.errors.partition=0"
        " --header __connect.errors.offset=1",
    ),
    "client-metrics": ("client-metrics set {name} --metrics * --interval 10s --yes",),
}
"""What makes each need, as the super user."""
DONE = (0, 1, 7)
"""Exit codes of commands that did their work: 1 and 7 say what they found, such as drift or a denial."""
