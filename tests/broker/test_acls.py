"""``kops acls`` on a broker that checks rights; which ACLs there are, librdkafka says."""

import pytest
import yaml
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from support.json_keys import as_pinned
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker
ANY = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


@pytest.fixture(scope="module")
def checking(own_brokers):
    return own_brokers(security="acl")


@pytest.fixture(scope="module")
def there(checking):
    """Return what a principal has, as librdkafka lists it: ``ALLOW READ TOPIC orders LITERAL *``."""
    admin = AdminClient(checking.client)

    def look(principal):
        found = admin.describe_acls(ANY).result(HANG_SECONDS)
        own = [acl for acl in found if acl.principal == principal]
        parts = ("permission_type", "operation", "restype")
        return {" ".join([*(getattr(acl, part).name for part in parts), acl.name, acl.resource_pattern_type.name, acl.host]) for acl in own}

    return look


@pytest.fixture
def kops(run_kops, checking, contexts):
    """Run kops as the super user."""
    contexts(checking=checking.sandbox.context())
    return lambda *arguments: run_kops(*arguments, "-c", "checking")


@pytest.fixture
def acls(kops):
    return lambda *arguments: kops("acls", *arguments)


def test_from_creation_to_deletion(acls, there, unique, tmp_path):
    user = f"User:{unique('u')}"
    create = ("create", user, "--operation", "read", "--operation", "write", "--resource", "topic:a b", "--host", "10.0.0.1")
    acls(*create, "--dry-run").ok()
    assert there(user) == set()
    acls(*create, "--plan-out", tmp_path / "plan").ok()
    acls(*create, "--yes").ok()
    made = {f"ALLOW {operation} TOPIC a b LITERAL 10.0.0.1" for operation in ("READ", "WRITE")}
    assert there(user) == made
    assert acls(*create, "--yes", "-o", "json").ok().json["status"] == "unchanged"
    rows = as_pinned("kops acls list", acls("list", user, "-o", "json").ok())
    assert {(row["operation"], row["name"], row["host"]) for row in rows} == {("READ", "a b", "10.0.0.1"), ("WRITE", "a b", "10.0.0.1")}
    gone = acls("delete", user, "--operation", "write", "--yes", "-o", "json").ok().json
    assert there(user) == {"ALLOW READ TOPIC a b LITERAL 10.0.0.1"}
    assert [item["status"] for item in gone["items"]] == ["done"]
    assert acls("delete", "--yes").code == 2, "no filter would mean all of them"


def test_a_plan_that_another_operator_overtook_is_refused(acls, kops, there, unique, tmp_path):
    user = f"User:{unique('u')}"
    acls("create", user, "--operation", "read", "--resource", "topic:a", "--plan-out", tmp_path / "plan").ok()
    acls("create", user, "--operation", "read", "--resource", "topic:a", "--yes").ok()
    late = kops("apply", tmp_path / "plan", "--yes")
    assert (late.code, "changed since the plan was made" in late.err) == (5, True)
    kops("undo", "last", "--yes").ok()
    assert there(user) == set()


def test_rights_by_purpose_are_granted_revoked_and_restored(acls, kops, there, unique):
    user = f"User:{unique('u')}"
    acls("grant", user, "--consume", "orders", "--group", "billing", "--yes").ok()
    consumes = {"ALLOW READ TOPIC orders LITERAL *", "ALLOW READ GROUP billing LITERAL *"}
    assert there(user) == consumes
    acls("grant", user, "--produce", "orders", "--yes").ok()
    assert there(user) == {*consumes, "ALLOW WRITE TOPIC orders LITERAL *"}
    assert acls("explain", user, "write", "topic:orders").code == 0
    acls("revoke", user, "--consume", "orders", "--group", "billing", "--yes").ok()
    assert there(user) == {"ALLOW WRITE TOPIC orders LITERAL *"}
    kops("undo", "last", "--yes").ok()
    assert there(user) == {*consumes, "ALLOW WRITE TOPIC orders LITERAL *"}


def test_what_is_explained_is_not_more_than_brokers_say(acls, unique):
    user = f"User:{unique('u')}"
    acls("create", user, "--operation", "read", "--resource", "topic:logs-", "--pattern", "prefixed", "--yes").ok()
    acls("create", user, "--deny", "--operation", "read", "--resource", "topic:logs-secret", "--yes").ok()
    allowed = acls("explain", user, "describe", "topic:logs-web")
    assert (allowed.code, "allowed:" in allowed.out) == (0, True)
    hidden = acls("explain", user, "read", "topic:logs-secret")
    assert (hidden.code, "brokers do not show super.users" in hidden.out) == (7, True)
    unlisted = acls("explain", user, "read", "topic:nothing-is-about-this")
    assert (unlisted.code, "brokers do not show super.users" in unlisted.out) == (7, True)
    denied = acls("explain", user, "read", "topic:logs-secret", "--super-user", "admin", "-o", "json")
    assert set(denied.json) == {"principal", "operation", "resource", "name", "host", "allowed", "rule", "entry", "also", "by_host"}
    assert (denied.code, denied.json["allowed"], denied.json["rule"]) == (1, False, "entry")


def test_what_is_exported_and_audited(acls, unique):
    name = unique("u")
    acls("create", f"User:{name}", "--operation", "all", "--resource", "topic:*", "--yes").ok()
    exported = list(yaml.safe_load_all(acls("export", f"User:{name}").ok().out))
    assert name in str(exported)
    found = acls("audit", f"User:{name}", "-o", "json")
    assert found.code == 1
    assert any(finding["severity"] == "warning" for finding in found.json["findings"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "x", "--operation", "reed", "--resource", "topic:a"], "not an operation"),
        (["create", "x", "--operation", "read", "--resource", "tpoic:a"], "not a resource"),
        (["create", "x", "--operation", "write", "--resource", "group:a"], "brokers check no WRITE on a group"),
        (["explain", "x", "read", "topic:a", "--host", "client.example"], "not an address"),
        (["grant", "x", "--consume", "a"], "--group"),
    ],
)
def test_what_is_wrong_is_exit_2(acls, arguments, said):
    refused = acls(*arguments)
    assert (refused.code, said in refused.err) == (2, True), refused.err


def test_a_cluster_without_an_authorizer_is_one_line(run_kops, broker):
    refused = run_kops("acls", "list", "-B", broker.bootstrap_servers)
    assert refused.code == 5
    assert len(refused.err.strip().splitlines()) <= 2


def test_a_second_look_after_the_change_waits_for_every_broker(acls, there, unique):
    user = f"User:{unique('u')}"
    acls("create", user, "--operation", "read", *(f"--resource=topic:t{number}" for number in range(700)), "--yes").ok()
    wait_for("all of them", lambda: len(there(user)) == 700)
    acls("delete", user, "--yes").ok()
    wait_for("none", lambda: there(user) == set())


def test_what_brokers_filter_is_what_the_filter_says(acls, there, unique):
    user, other, topic = f"User:{unique('u')}", f"User:{unique('u')}", unique("t")
    made = (
        (user, "read", f"topic:{topic}", "literal", "*"),
        (user, "read", f"topic:{topic[:-1]}", "prefixed", "10.0.0.1"),
        (other, "write", f"topic:{topic}", "literal", "*"),
        (other, "read", f"group:{topic}", "literal", "*"),
        (other, "describe", "topic:*", "literal", "*"),
    )
    for principal, operation, resource, pattern, host in made:
        acls("create", principal, "--operation", operation, "--resource", resource, "--pattern", pattern, "--host", host, "--yes").ok()

    def listed(*arguments):
        rows = acls("list", *arguments, "-o", "json").ok().json
        return {
            made.index((row["principal"], row["operation"].lower(), f"{row['resource']}:{row['name']}", row["pattern"], row["host"]))
            for row in rows
        }

    assert listed(user) == {0, 1}
    assert listed(user, other) == {0, 1, 2, 3, 4}
    assert listed(user, other, "--resource", f"topic:{topic}") == {0, 2}
    assert listed(user, other, "--resource", f"topic:{topic}", "--pattern", "match") == {0, 1, 2, 4}
    assert listed(user, other, "--resource", f"topic:{topic[:-1]}", "--pattern", "prefixed") == {1}
    assert listed(user, other, "--resource", "topic", "--host", "10.0.0.1") == {1}
    assert listed(user, other, "--operation", "write", "--permission", "allow") == {2}
    found = acls("explain", other, "read", f"topic:{topic}", "--super-user", "admin", "-o", "json")
    assert (found.json["rule"], found.code) == ("no match", 1)
    acls("delete", other, "--yes").ok()
    assert there(other) == set()
