"""Which rights each verb needs: what the broker's authorizer is asked, and what comes of it when one of these is missing."""

import contextlib
import itertools
import json
import os
import re
import uuid
from datetime import datetime, timezone
from pathlib import Path

import pytest
import requests
from confluent_kafka._model import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, ConfigResource, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeAclsRequest

from kops.core.acls.decide import IMPLIES
from kops.core.acls.models import ALLOW, ANY, CLUSTER_NAME, LITERAL, PREFIXED, Acl
from kops.core.acls.verbs import OF_VERBS, ROLES, SILENT, as_entry
from kops.core.errors import ExitCode
from kops.core.models import TopicPartition
from kops.gateways.kafka import Kafka
from kops.gateways.kafka.admin import answer_of, kafka_python_settings
from kops.gateways.machine.jars import connect_set, jars_of
from kops.sandbox import brokers
from kops.sandbox.model import USERNAME
from support.connect import FILE_SINK, secured_worker
from support.consumer_groups import member
from support.every_version import open_transaction, other_directory
from support.patience import HANG_SECONDS
from support.programs import Program
from support.rights_cases import CASES, DONE, MADE
from support.services import WorkerProcesses
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

USER = "scout"
LOGGER = '    <Logger name="kafka.authorizer.logger" level="DEBUG"/>\n  </Loggers>'
ASKED = re.compile(rf"Principal = User:{USER} is Allowed operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(\S+) for request")
KINDS = {"transactionalid": "transactional-id", "delegationtoken": "delegation-token"}
SAID = {"cluster": "the cluster", "transactional-id": "transactional id"}
ON_CLUSTER = ("DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE")
"""Not CREATE and DELETE, which would be asked for before these rights on the topic."""
ELSEWHERE = {(kind, place) for rights in OF_VERBS.values() for kind, _, place in map(as_entry, rights) if place and place not in ROLES}
NOT_MEANT = re.compile(r"__.*|kops-reader-.*")
"""What librdkafka and kops ask about besides what a command names, and do without."""
INTERNAL = re.compile(r".*\(lacks DESCRIBE(_CONFIGS)? on topic __.*")
"""What it reports of the brokers' own topics, at which only a look at everything looks."""
COUNT = Program("count", "long", value="bytes")


@pytest.fixture(scope="module")
def started(own_brokers):
    """Brokers that check every right, and log what they were asked; by their number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "LOG4J2", brokers.LOG4J2.replace("  </Loggers>", LOGGER))
        settings = brokers.server_settings
        patch.setattr(brokers, "server_settings", lambda *at, **how: settings(*at, **how) | {"delegation.token.secret.key": "of-the-tests"})
        running = {}

        def start(number):
            if number not in running:
                own = own_brokers(brokers=number, security="acl", racks=True)
                password = UserScramCredentialUpsertion(USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret")
                admin = AdminClient(own.client)
                admin.alter_user_scram_credentials([password])[USER].result(HANG_SECONDS)
                running[number] = own
            return running[number]

        yield start


@pytest.fixture(scope="module")
def worker(started, jdk, tmp_path_factory):
    """Start a Connect worker beside the broker when it is first asked for; ``worker()`` gives its address."""
    with contextlib.ExitStack() as stack:
        running = []

        def start():
            if not running:
                own, folder = started(1), tmp_path_factory.mktemp("connect")
                password = (own.sandbox.directory / "password").read_text().strip()
                found = secured_worker(own, folder, "workers", USERNAME, password)
                processes = WorkerProcesses(found, jars_of(connect_set(), Path(os.environ["KOPS_CACHE_DIR"])), jdk)
                stack.callback(processes.close)
                processes.up()
                running.append(f"http://127.0.0.1:{found.workers[0].port}")
            return running[0]

        yield start


@pytest.fixture
def checking(started, verb):
    return started(CASES[verb].brokers)


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
    """Give the user these rights and no others: ``having({"topic DESCRIBE"}, {"topic": ["orders"]})``."""
    with contextlib.closing(Kafka(checking.connection)) as kafka:

        def give(rights, places):
            wanted = {
                Acl(
                    f"User:{USER}",
                    ALLOW,
                    operation,
                    kind,
                    name.rstrip(ANY) or ANY,
                    PREFIXED if name.rstrip(ANY) not in ("", name) else LITERAL,
                )
                for kind, operation, place in map(as_entry, rights)
                for name in places.get(place or kind, [place])
            }
            there = {acl for acl in kafka.acls.all() if acl.principal == f"User:{USER}"}
            assert not kafka.acls.delete(list(there - wanted))
            assert not kafka.acls.create(list(wanted - there))
            for node in checking.sandbox.nodes:
                wait_for(f"broker {node.id} to have the ACLs", lambda node=node: acls_of_user(checking.connection, node.id) == len(wanted))

        yield give


def acls_of_user(connection, broker):
    """Return how many ACLs of the user a broker knows."""
    with contextlib.closing(KafkaAdminClient(**kafka_python_settings(connection))) as admin:
        every = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "host_filter": None}
        asked = DescribeAclsRequest(**every, principal_filter=f"User:{USER}", operation=1, permission_type=1)
        return sum(len(place["acls"]) for place in answer_of(admin, asked, broker)["resources"])


@pytest.fixture(scope="module")
def numbers():
    return itertools.count(11)


@pytest.fixture
def make(checking, kops, home, numbers, worker, monkeypatch):
    """Make what a case needs; return the names in its line, and those of its resources by type and role."""
    (editor := home / "editor").write_text("#!/bin/sh\nsed -i 's/  0: 0 /  0: 1 /' \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    settings = {name.replace(".", "_"): value for name, value in checking.client.items() if name != "bootstrap.servers"}
    with contextlib.ExitStack() as there, contextlib.closing(Kafka(checking.connection)) as kafka:

        def further(names):
            """What kops does not make: by need."""
            topic, group, name, folder = names["topic"], names["group"], names["name"], home / names["name"]
            servers, first = checking.bootstrap_servers, {TopicPartition(topic, 0): 1}
            declared = json.dumps({"name": names["new"], "partitions": 1})
            return {
                "application": lambda: folder.with_suffix(".yaml").write_text(json.dumps(COUNT.named(names["tag"]).state_file())),
                "file": lambda: folder.with_suffix(".yaml").write_text(declared),
                "folder": lambda: (folder.mkdir(), (folder / "topics.yaml").write_text(declared)),
                "directory": lambda: names.update(directory=other_directory(checking.sandbox.directory, f"{topic}-0")),
                "share": lambda: wait_for("the group", lambda: set(kafka.groups.move_share_offsets(group, first).values()) == {None}),
                "connector": lambda: connector(names, folder.with_suffix(".yaml")),
                "missing": lambda: folder.with_suffix(".yaml").write_text(json.dumps(sink(name, names["new"], folder))),
                "moved": lambda: (
                    names.update(before=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"),
                    kops("root", "offsets", "seek", group, f"{topic}:0=1", "--yes").ok(),
                ),
                "turned": lambda: turned(topic),
                "token": lambda: token(names, folder),
                "member": lambda: there.enter_context(member(servers, group, topic, **settings)),
                "transaction": lambda: there.enter_context(open_transaction(servers, name, topic, **settings)),
            }

        def connector(names, file):
            monkeypatch.setenv("KOPS_CONNECT_URLS", url := worker())
            config = sink(names["name"], names["topic"], file.with_suffix(""))
            requests.put(f"{url}/connectors/{names['name']}/config", json=config["config"], timeout=HANG_SECONDS).raise_for_status()
            wait_for(
                "the connector", lambda: "RUNNING" in requests.get(f"{url}/connectors/{names['name']}/status", timeout=HANG_SECONDS).text
            )
            asked = f"{url}/connectors/{names['name']}/offsets"
            wait_for("its offsets", lambda: requests.get(asked, timeout=HANG_SECONDS).json().get("offsets"))
            file.write_text(json.dumps({**config, "config": {**config["config"], "tasks.max": "2"}}))

        def turned(topic):
            """Let replicas lead that are no longer the first."""
            now = {place: part.replicas for place, part in placed(topic).items()}
            assert set(kafka.replicas.reassign({place: replicas[::-1] for place, replicas in now.items()}).values()) == {None}
            wait_for("the order", lambda: all(part.replicas == now[place][::-1] for place, part in placed(topic).items()))

        def placed(topic):
            found = kafka.topics.describe([topic])[topic]
            return dict(zip(found.places, found.partitions, strict=True))

        def token(names, file):
            kops("root", "tokens", "create", "--owner", f"User:{USER}", "--to", file, "--yes").ok()
            found = kops("root", "tokens", "list", f"User:{USER}", "-o", "json").ok().json
            names.update(token=max(found, key=lambda each: each["issued_at"])["token"])

        def made(case):
            tag = uuid.uuid4().hex[:12]
            names = {each: f"{each}-{tag}" for each in ("topic", "new", "target", "group", "name")}
            program = COUNT.named(tag)
            names |= {"application": program.application, "input": program.topic, "changelog": program.changelog}
            names |= {"folder": str(home), "number": str(next(numbers)), "tag": tag}
            own = further(names)
            for need in case.needs.split():
                for line in MADE.get(need, ()):
                    kops("root", *filled(line, names)).ok()
                own.get(need, lambda: None)()
            groups = [ANY] if case.all_groups else [names["group"], f"{names['group']}-2", names["application"]]
            roles = {role: [f"{name.format(**names)}{ANY * (role == 'changelog')}"] for role, name in case.roles.items()}
            topics = [name for some in roles.values() for name in some] or [
                names[each] for each in ("topic", "new", "target", "input", "changelog")
            ]
            places = {
                "topic": [ANY] if case.all_topics else topics,
                "group": groups,
                "cluster": [CLUSTER_NAME],
                "transactional-id": [names["name"]],
            }
            return names, {**places, "user": [f"User:{names['name']}"], "delegation-token": [ANY], **roles}

        yield made


def sink(name, topic, file):
    return {"name": name, "config": {"connector.class": FILE_SINK, "file": str(file), "topics": topic, "tasks.max": "1", "name": name}}


def filled(line, names):
    return [word.format(**names) for word in line.split()]


def state(checking, kops, verb, names):
    """Return what a verb could have changed."""
    admin = AdminClient(checking.client)
    known = {name: topic for name, topic in admin.list_topics(timeout=HANG_SECONDS).topics.items() if names["tag"] in name}
    found = {}
    for topic, about in known.items():
        resource = ConfigResource("topic", topic)
        settings = admin.describe_configs([resource])[resource].result(HANG_SECONDS)
        partitions = [(each.id, each.leader, each.replicas) for each in about.partitions.values()]
        found[topic] = partitions, {key: each.value for key, each in settings.items()}
    groups = {
        each.group_id: each.state for each in admin.list_consumer_groups().result(HANG_SECONDS).valid if names["tag"] in each.group_id
    }
    for group, there in groups.items():
        request = [ConsumerGroupTopicPartitions(group)]
        answer = admin.list_consumer_group_offsets(request)[group].result(HANG_SECONDS)
        found[group] = there, [(each.topic, each.partition, each.offset) for each in answer.topic_partitions]
    noun = verb.split()[0]
    for each in (
        ("acls", "users", "quotas", "client-metrics") if noun == "cluster" else {noun} & {"acls", "users", "quotas", "client-metrics"}
    ):
        found[each] = kops("root", each, "list", "-o", "json").ok().out
    if noun == "cluster":
        found[noun] = kops("root", noun, "features", "list", "-o", "json").ok().out
    if noun == "brokers":
        found[noun] = [kops("root", noun, *more, "-o", "json").ok().out for more in (("config", "1"), ("log-dirs", "--replicas"))]
    if noun == "connect":
        found[noun] = kops("root", noun, "describe", names["name"], "-o", "json").out
    if noun == "share-groups":
        found[noun] = kops("root", noun, "lag", names["group"], "-o", "json").out
    if noun == "transactions":
        found[noun] = [(each["transactional_id"], each["state"]) for each in kops("root", noun, "list", "-o", "json").ok().json]
    if noun == "tokens":
        found[noun] = kops("root", noun, "list", f"User:{USER}", "-o", "json").ok().out
    if known:
        found["ends"] = kops("root", "topics", "offsets", *known, "-o", "json").out
    return found


def without_user(found, user=USER):
    """Leave out the ACLs of the user itself, which differ from run to run."""
    return {key: value for key, value in found.items() if key != "acls"} | {
        "acls": [line for line in str(found.get("acls", "")).split("{") if f"User:{user}" not in line]
    }


def ran(outcome):
    """Whether a command did its work, but for a look at the brokers' own topics."""
    return outcome.code in (*DONE, *([ExitCode.PARTIAL] if INTERNAL.search(outcome.out) else []))


def place_of(kind, name, roles):
    """Return the role of a resource, or its name in the table where it is not one of those that are given."""
    others = [place for of, place in ELSEWHERE if of == kind and (name.startswith(place[:-1]) if place.endswith(ANY) else name == place)]
    return next(iter([role for role, (own,) in roles.items() if kind == "topic" and name.startswith(own.rstrip(ANY))] + others), "")


@pytest.mark.parametrize("verb", CASES)
def test_the_broker_is_asked_what_the_table_says(checking, kops, having, make, verb):
    case = CASES[verb]
    names, places = make(case)
    roles = {role: places[role] for role in case.roles}
    everything = {f"{kind} ALL" for kind in ("topic", "group", "transactional-id", "delegation-token")}
    everything |= {f"{kind} ALL {place}" for kind, place in ELSEWHERE} | {"user CREATE_TOKENS", "user DESCRIBE_TOKENS"}
    having({*everything, *(f"cluster {each}" for each in ON_CLUSTER)}, places)
    logs = [checking.sandbox.folder(node) / "server.log" for node in checking.sandbox.nodes]
    before = [log.stat().st_size for log in logs]
    outcome = kops(USER, *verb.split(), *filled(case.line, names))
    assert ran(outcome), outcome.out + outcome.err
    by_place = {}
    for log, start in zip(logs, before, strict=True):
        with log.open() as lines:
            lines.seek(start)
            for operation, kind, name in ASKED.findall(lines.read()):
                type_ = KINDS.get(kind.lower(), kind.lower())
                place = place_of(type_, name, roles)
                if operation not in ("DESCRIBE", "DESCRIBE_CONFIGS") or not NOT_MEANT.fullmatch(name):
                    by_place.setdefault((type_, place), set()).add(operation)
    for operations in by_place.values():
        operations -= {less for less, more in IMPLIES.items() if operations & {each for each in more if each != less}}
    by_role = [by_place.pop(("topic", role), set()) for role in roles]
    if shared := set.intersection(*by_role) if by_role else set():
        by_place["topic", ""] = shared
    by_place |= {("topic", role): own - shared for role, own in zip(roles, by_role, strict=True)}
    needed = {f"{kind} {operation} {place}".strip() for (kind, place), operations in by_place.items() for operation in operations}
    expected = {right.removeprefix(SILENT) for right in OF_VERBS[verb]}
    assert needed == expected, f'    "{verb}": {tuple(sorted(needed))},'


@pytest.mark.parametrize("verb", CASES)
def test_with_exactly_these_it_works_and_without_any_it_names_it_and_changes_nothing(checking, kops, having, make, verb):
    case, rights = CASES[verb], OF_VERBS[verb]
    names, places = make(case)
    having({right.removeprefix(SILENT) for right in rights}, places)
    outcome = kops(USER, *verb.split(), *filled(case.line, names))
    assert ran(outcome) and "lacks" not in INTERNAL.sub("", outcome.out + outcome.err), outcome.out + outcome.err
    wrong = []
    for right in rights:
        names, places = make(case)
        kind, operation, place = as_entry(right)
        less = {f"{kind} {each} {place}" for each, more in IMPLIES.items() if operation in more and operation != each}
        having(less | {each.removeprefix(SILENT) for each in rights if each != right}, places)
        before = without_user(state(checking, kops, verb, names))
        outcome = kops(USER, *verb.split(), *filled(case.line, names))
        named = f"{operation} on {SAID.get(kind, kind)}" in outcome.out + outcome.err
        changed = without_user(state(checking, kops, verb, names)) != before
        known = (*DONE, *([ExitCode.PARTIAL] if right in case.last else []))
        if named == right.startswith(SILENT) or (changed and outcome.code not in known):
            wrong.append(f"without {right}: {outcome.code}, named {named}, changed {changed}\n{outcome.out[-900:]}{outcome.err[-600:]}")
    assert not wrong, "\n".join(wrong)
