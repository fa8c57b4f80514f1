"""Entries read back as written; decisions and purposes follow the rules of ``StandardAuthorizer``."""

import pytest

from kops.core.acls.decide import Brokers, decide, java_address
from kops.core.acls.models import Acl, Resource, acl_of_text
from kops.core.acls.purposes import Purposes, entries, kept_on_revoke

ORDERS = Resource("topic", "orders")
READ = Acl("User:a", "ALLOW", "READ", "topic", "orders")


@pytest.mark.parametrize("acl", [READ, READ._replace(name="it's from", pattern="prefixed"), READ._replace(name="x from", host="10.0.0.1")])
def test_an_entry_is_read_back(acl):
    assert acl_of_text(str(acl)) == acl


def test_a_deny_is_stronger_and_implies_nothing():
    deny = READ._replace(permission="DENY", principal="User:*")
    assert decide([READ, deny], "User:a", "READ", ORDERS, "", Brokers()).acl == deny
    assert decide([READ, deny], "User:a", "DESCRIBE", ORDERS, "", Brokers()).allowed is True


def test_what_brokers_hide_is_not_known():
    assert decide([READ], "User:b", "READ", ORDERS, "", Brokers(None)).allowed is None
    assert decide([], "User:b", "READ", ORDERS, "", Brokers((), None)).allowed is None


def test_addresses_are_written_as_java_does():
    assert (java_address("::1"), java_address("host")) == ("0:0:0:0:0:0:0:1", None)


def test_a_verb_gets_its_rights_where_they_are_needed():
    purposes = Purposes(kops=("replay run",), on_topic=("orders", "copies-*"))
    found = {(acl.operation, acl.place) for acl in entries("User:a", purposes)}
    assert {("WRITE", "topic:copies- prefixed"), ("WRITE", "topic:kops-progress"), ("READ", "group:kops-replay- prefixed")} <= found
    assert ("WRITE", "transactional-id:kops-replay- prefixed") in found
    assert {place for _, place in found if place.startswith("group:")} == {"group:kops-replay- prefixed"}


def test_a_verb_on_no_named_resource_gets_its_rights_on_all():
    found = {(acl.operation, acl.place) for acl in entries("User:a", Purposes(kops=("transactions abort", "tokens create --owner")))}
    assert {("WRITE", "transactional-id:*"), ("CREATE_TOKENS", "user:*")} <= found


def test_a_group_that_reads_another_topic_stays():
    purposes = Purposes(consume=("orders",), group="g")
    removing = entries("User:a", purposes)
    assert set(kept_on_revoke(purposes, removing, [*removing, READ._replace(name="other")])) == {
        Acl("User:a", "ALLOW", "READ", "group", "g")
    }
