"""Which ACLs a purpose needs: consuming, producing, Kafka Streams, Connect, verbs of kops. Pure.

Without DESCRIBE_CONFIGS on their topics, Connect workers start and do not look whether these are compacted (``TopicAdmin``).
A READ or WRITE implies DESCRIBE, and WRITE on a topic lets producers be idempotent (KIP-679), so neither gets entries of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kops.core.acls.models import ALL, ALLOW, ANY, CLUSTER_NAME, LITERAL, PREFIXED, Acl
from kops.core.acls.verbs import OF_VERBS, ROLES, as_entry
from kops.core.errors import UsageProblem

_TOPICS, _GROUPS, _CLUSTER = "topic", "group", "cluster"


@dataclass(frozen=True)
class Purposes:
    """What a principal is to do.

    :param consume: topics, read as ``group``; a name with ``*`` at its end is a prefix, here and below
    :param streams: id of a Kafka Streams application, for its group and internal topics; input and output are consumed and produced
    :param connect: group id of the Connect workers
    :param connect_topics: what the names of the workers' own topics begin with; None: the group id and a hyphen
    :param kops: verbs, on the topics ``on_topic`` and the groups ``on_group``
    """

    consume: tuple[str, ...] = ()
    group: str | None = None
    produce: tuple[str, ...] = ()
    transactional_id: str | None = None
    streams: tuple[str, ...] = ()
    connect: str | None = None
    connect_topics: str | None = None
    kops: tuple[str, ...] = ()
    on_topic: tuple[str, ...] = ()
    on_group: tuple[str, ...] = ()
    host: str = ANY


def entries(principal: str, purposes: Purposes) -> tuple[Acl, ...]:
    """Return the ACLs that purposes need.

    :raises UsageProblem: for purposes that do not fit together, or none
    """
    _check(purposes)
    needs: list[tuple[str, str, str, str]] = []
    for name in purposes.consume:
        needs.append((_TOPICS, *_pattern(name), "READ"))
    if purposes.group:
        needs.append((_GROUPS, *_pattern(purposes.group), "READ"))
    for name in purposes.produce:
        needs.append((_TOPICS, *_pattern(name), "WRITE"))
    if purposes.transactional_id:
        needs.append(("transactional-id", *_pattern(purposes.transactional_id), "WRITE"))
    for app in purposes.streams:
        own = f"{app}-"
        needs += [(_GROUPS, app, LITERAL, "READ"), ("transactional-id", own, PREFIXED, "WRITE")]
        needs += [(_TOPICS, own, PREFIXED, operation) for operation in ("READ", "WRITE", "CREATE", "DELETE")]
    if purposes.connect:
        own = purposes.connect_topics or f"{purposes.connect}-"
        needs += [(_GROUPS, purposes.connect, LITERAL, "READ"), (_GROUPS, "connect-", PREFIXED, "READ")]
        needs += [(_TOPICS, own, PREFIXED, operation) for operation in ("READ", "WRITE", "CREATE", "DESCRIBE_CONFIGS")]
        leader, tasks = f"connect-cluster-{purposes.connect}", f"{purposes.connect}-"
        needs += [("transactional-id", leader, LITERAL, "WRITE"), ("transactional-id", tasks, PREFIXED, "WRITE")]
    places = {_TOPICS: purposes.on_topic, _GROUPS: purposes.on_group, _CLUSTER: (CLUSTER_NAME,)}
    for verb in purposes.kops:
        for kind, operation, place in map(as_entry, OF_VERBS[verb]):
            names = (place,) if place and place not in ROLES else places.get(kind) or (ANY,)
            needs += [(kind, *_pattern(name), operation) for name in names]
    acls = dict.fromkeys(Acl(principal, ALLOW, operation, kind, name, pattern, purposes.host) for kind, name, pattern, operation in needs)
    implied = {acl._replace(operation="DESCRIBE") for acl in acls if acl.operation in ("READ", "WRITE", "DELETE", "ALTER")}
    implied |= {acl._replace(operation="DESCRIBE_CONFIGS") for acl in acls if acl.operation == "ALTER_CONFIGS"}
    return tuple(acl for acl in acls if acl not in implied)


def kept_on_revoke(purposes: Purposes, removing: Collection[Acl], acls: Iterable[Acl]) -> dict[Acl, str]:
    """Return the entries that something else of this principal needs, and what: they stay.

    A consumer needs READ on its topic and on its group, a transactional producer WRITE on its topic and on its transactional id. While the
    principal has that right on another topic, the group (or transactional id) stays: losing the topic is what the revocation is for.

    :param removing: the entries of the purposes
    :param acls: every entry of the cluster
    """
    gone = set(removing)
    kept: dict[Acl, str] = {}
    for acl in gone:
        operation = {_GROUPS: "READ", "transactional-id": "WRITE"}.get(acl.type)
        if acl.operation != operation or not (purposes.consume if acl.type == _GROUPS else purposes.produce):
            continue
        others = [
            one
            for one in acls
            if one not in gone
            and one.principal == acl.principal
            and (one.permission, one.type) == (ALLOW, _TOPICS)
            and one.operation in (operation, ALL)
        ]
        if others:
            what = "consume" if acl.type == _GROUPS else "produce to"
            kept[acl] = f"stays: {acl.principal} may still {what} {others[0].name} with it"
    return kept


def _pattern(name: str) -> tuple[str, str]:
    return (name[:-1], PREFIXED) if name.endswith("*") and name != ANY else (name, LITERAL)


def _check(purposes: Purposes) -> None:
    if not any((purposes.consume, purposes.produce, purposes.streams, purposes.connect, purposes.kops)):
        raise UsageProblem(
            "no purpose is given", hint="--consume TOPIC --group GROUP, --produce TOPIC, --streams APP, --connect CLUSTER, --kops VERB"
        )
    for given, needed, said in (
        (purposes.consume, purposes.group, "--consume needs --group, and --group needs --consume"),
        (purposes.produce, purposes.transactional_id, "--transactional-id needs --produce"),
        (purposes.connect, purposes.connect_topics, "--connect-topics needs --connect"),
        (purposes.kops, purposes.on_topic or purposes.on_group, "--on-topic and --on-group need --kops"),
    ):
        if (needed and not given) or (given and not needed and given is purposes.consume):
            raise UsageProblem(said, hint="`kops acls grant --help` has examples")
    for verb in purposes.kops:
        if verb not in OF_VERBS:
            from kops.core.statefile.fields import nearest

            raise UsageProblem(f"kops has no table of rights for {verb!r}", hint=f"{nearest(verb, list(OF_VERBS))}see docs/rights.md")
    texts = (*purposes.consume, *purposes.produce, *purposes.streams, *purposes.on_topic, *purposes.on_group)
    if not all((*texts, purposes.group != "", purposes.transactional_id != "", purposes.connect != "")):
        raise UsageProblem("an empty name is not a resource", hint="write * for every one")
