"""Whether an action is allowed is what Kafka's ``StandardAuthorizer`` decides."""

import pytest

from kops.core.acls.decide import Brokers, decide, java_address
from kops.core.acls.models import ALL, ANY, CLUSTER_NAME, LITERAL, OPERATIONS, PREFIXED, Acl, Resource
from support.java_judge import COUNTS, portions, random_of

PRINCIPALS = ("User:alice", "User:bob", "User:CN=x,OU=y", "Group:ops")
HOSTS = ("10.0.0.1", "10.0.0.2", "fe80::1", "::ffff:10.0.0.1")
NAMES = ("a", "ab", "abc", "b", "Zz", "orders", "orders-1", "_x", "é")
JAVA = {kind: kind.upper().replace("-", "_") for kind in OPERATIONS}


def case_of(random):
    def resource():
        kind = random.choice(("topic", "topic", "topic", "group", "cluster", "transactional-id", "user"))
        return kind, CLUSTER_NAME if kind == "cluster" else random.choice(NAMES)

    def acl():
        kind, name = resource()
        pattern = random.choice((LITERAL, PREFIXED))
        if kind != "cluster" and random.random() < 0.2:
            name, pattern = ANY, LITERAL
        host = random.choice((ANY, ANY, *map(java_address, HOSTS)))
        principal = random.choice((*PRINCIPALS, "User:*"))
        operation = random.choice((ALL, *OPERATIONS[kind]))
        return Acl(principal, random.choice(("ALLOW", "ALLOW", "DENY")), operation, kind, name, pattern, host)

    def question():
        kind, name = resource()
        return random.choice(PRINCIPALS), random.choice(OPERATIONS[kind]), Resource(kind, name), random.choice(HOSTS)

    acls = list(dict.fromkeys(acl() for _ in range(random.randint(0, 30))))
    brokers = Brokers(random.sample(PRINCIPALS, random.choice((0, 0, 1))), random.random() < 0.3)
    return acls, brokers, [question() for _ in range(20)]


def as_json(acls, brokers, asked):
    config = {"super.users": ";".join(brokers.super_users)} if brokers.super_users else {}
    config["allow.everyone.if.no.acl.found"] = str(brokers.allow_unlisted).lower()
    return {
        "config": config,
        "acls": [[acl.principal, acl.permission, acl.operation, JAVA[acl.type], acl.name, acl.pattern.upper(), acl.host] for acl in acls],
        "asked": [[who, what, JAVA[on.type], on.name, host] for who, what, on, host in asked],
    }


@pytest.mark.parametrize("count", COUNTS)
def test_what_is_allowed(java_judge, count):
    allowed = entries = 0
    for cases in portions(case_of(each) for each in random_of("rights", count)):
        for (acls, brokers, asked), answer in zip(cases, java_judge.ask("Rights", [as_json(*case) for case in cases]), strict=True):
            assert "ok" in answer, (acls, brokers, answer)
            found = [decide(acls, who, what, on, java_address(host), brokers) for who, what, on, host in asked]
            wrong = [each for each in zip(asked, found, answer["ok"], strict=True) if each[1].allowed is not each[2]]
            assert not wrong, (wrong[0], acls, brokers)
            allowed += sum(answer["ok"])
            entries += sum(each.rule == "entry" for each in found)
    assert count < allowed < 15 * count
    assert entries > count  # of 20 questions each
