"""Which rights each verb needs: what the broker's authorizer is asked, and what comes of it when one of these is missing."""

import itertools
import re
import uuid

import pytest
from confluent_kafka._model import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kops.core.acls.decide import IMPLIES
from kops.core.acls.verbs import OF_VERBS, SILENT, as_entry
from kops.sandbox import brokers
from support.patience import HANG_SECONDS
from support.rights_cases import CASES, DONE, MADE
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.long]

USER = "scout"
LOGGER = '    <Logger name="kafka.authorizer.logger" level="DEBUG"/>\n  </Loggers>'
ASKED = re.compile(rf"Principal = User:{USER} is Allowed operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(\S+) for request")
TYPES = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
ON_CLUSTER = ("DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE")
"""Not CREATE and DELETE, which would be asked for before these rights on the topic."""
NOT_MEANT = ("__consumer_offsets", "kops-reader-")
"""What librdkafka and kops ask about besides what a command names, and do without."""


@pytest.fixture(scope="module")
def checking(own_brokers):
    """A broker that checks every right, and logs what it was asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "LOG4J2", brokers.LOG4J2.replace("  </Loggers>", LOGGER))
        own = own_brokers(security="acl")
        password = UserScramCredentialUpsertion(USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret")
        admin = AdminClient(own.client)
        admin.alter_user_scram_credentials([password])[USER].result(HANG_SECONDS)
        yield own


@pytest.fixture
def kops(checking, run_kops, home, contexts):
    """Run kops as the super user, or as another: ``kops(USER, "topics", "list")``."""
    root = checking.sandbox.context()
    (home / "password").touch(mode=0o600)
    (home / "password").write_text("secret")
    contexts(**{"root": root, USER: {**root, "username": USER, "password_file": str(home / "password")}})
    return lambda user, *arguments: run_kops(*arguments, "-c", user)


@pytest.fixture
def having(checking):
    """Give the user these rights and no others: ``having({"topic DESCRIBE"}, {"topic": "orders"})``."""
    admin = AdminClient(checking.client)
    of_user = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{USER}", None, AclOperation.ANY, AclPermissionType.ANY
    )

    def give(rights, names):
        wanted = set()
        for right in rights:
            kind, operation = right.split()
            places = names[kind] if kind != "cluster" else ["kafka-cluster"]
            wanted |= {(TYPES[kind], name, AclOperation[operation]) for name in places}
        bindings = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, operation in wanted
        ]
        for gone in admin.delete_acls([of_user]).values():
            gone.result(HANG_SECONDS)
        for made in admin.create_acls(bindings).values() if bindings else ():
            made.result(HANG_SECONDS)

        def there():
            return {(each.restype, each.name, each.operation) for each in admin.describe_acls(of_user).result(HANG_SECONDS)}

        wait_for("the broker to have the ACLs", lambda: there() == wanted)

    return give


@pytest.fixture(scope="module")
def numbers():
    return itertools.count(11)


@pytest.fixture
def make(kops, home, numbers):
    """Make what a case needs; return the names in its line, and those of its resources by type."""

    def made(case):
        names = {each: f"{each}-{uuid.uuid4().hex[:12]}" for each in ("topic", "new", "group", "name")}
        names |= {"folder": str(home), "number": str(next(numbers))}
        for need in case.needs.split():
            for line in MADE[need]:
                kops("root", *filled(line, names)).ok()
        groups = [names["group"], f"{names['group']}-2"] if "{group}" in case.line else ["*"]  # what looks at all groups
        return names, {"topic": [names["topic"], names["new"]], "group": groups}

    return made


def filled(line, names):
    return [word.format(**names) for word in line.split()]


def state(checking, kops, verb, names):
    """Return what a verb could have changed."""
    admin = AdminClient(checking.client)
    found = {}
    known = admin.list_topics(timeout=HANG_SECONDS).topics
    for topic in {names["topic"], names["new"]} & set(known):
        resource = ConfigResource("topic", topic)
        settings = admin.describe_configs([resource])[resource].result(HANG_SECONDS)
        found[topic] = len(known[topic].partitions), {key: each.value for key, each in settings.items()}
    groups = {each.group_id for each in admin.list_consumer_groups().result(HANG_SECONDS).valid}
    for group in {names["group"], f"{names['group']}-2"} & groups:
        request = [ConsumerGroupTopicPartitions(group)]
        answer = admin.list_consumer_group_offsets(request)[group].result(HANG_SECONDS)
        found[group] = [(each.topic, each.partition, each.offset) for each in answer.topic_partitions]
    noun = verb.split()[0]
    if noun in ("acls", "users", "quotas", "client-metrics"):
        found[noun] = kops("root", noun, "list", "-o", "json").ok().out
    if noun == "brokers":
        found[noun] = kops("root", "brokers", "config", "1", "-o", "json").ok().out
    if noun in ("topics", "records"):
        found["ends"] = kops("root", "topics", "offsets", names["topic"], "-o", "json").out
    return found


def without_user(found, user=USER):
    """Leave out the ACLs of the user itself, which differ from run to run."""
    return {key: value for key, value in found.items() if key != "acls"} | {
        "acls": [line for line in str(found.get("acls", "")).split("{") if f"User:{user}" not in line]
    }


@pytest.mark.parametrize("verb", CASES)
def test_the_broker_is_asked_what_the_table_says(checking, kops, having, make, verb):
    case = CASES[verb]
    names, places = make(case)
    having({"topic ALL", "group ALL", *(f"cluster {each}" for each in ON_CLUSTER)}, places)
    log = checking.sandbox.folder(checking.sandbox.nodes[0]) / "server.log"
    before = log.stat().st_size
    outcome = kops(USER, *verb.split(), *filled(case.line, names))
    assert outcome.code in DONE, outcome.err
    with log.open() as lines:
        lines.seek(before)
        asked = {f"{kind.lower()} {operation}" for operation, kind, name in ASKED.findall(lines.read()) if not name.startswith(NOT_MEANT)}
    implied = {f"{kind} {less}" for kind, own in map(str.split, asked) for less, more in IMPLIES.items() if own in more and own != less}
    needed = asked - implied
    assert needed == {right.removeprefix(SILENT) for right in OF_VERBS[verb]}, f'    "{verb}": {tuple(sorted(needed))},'


@pytest.mark.parametrize("verb", CASES)
def test_with_exactly_these_it_works_and_without_any_it_names_it_and_changes_nothing(checking, kops, having, make, verb):
    case, rights = CASES[verb], OF_VERBS[verb]
    names, places = make(case)
    having({right.removeprefix(SILENT) for right in rights}, places)
    outcome = kops(USER, *verb.split(), *filled(case.line, names))
    assert outcome.code in DONE and "lacks" not in outcome.out + outcome.err, outcome.out + outcome.err
    wrong = []
    for right in rights:
        names, places = make(case)
        kind, operation = as_entry(right)
        less = {f"{kind} {each}" for each, more in IMPLIES.items() if operation in more and operation != each}
        having(less | {each.removeprefix(SILENT) for each in rights if each != right}, places)
        before = without_user(state(checking, kops, verb, names))
        outcome = kops(USER, *verb.split(), *filled(case.line, names))
        named = f"{operation} on {'the cluster' if kind == 'cluster' else kind}" in outcome.out + outcome.err
        changed = without_user(state(checking, kops, verb, names)) != before
        if named == right.startswith(SILENT) or (changed and outcome.code not in DONE):
            wrong.append(f"without {right}: {outcome.code}, named {named}, changed {changed}\n{outcome.err[-400:]}")
    assert not wrong, "\n".join(wrong)
