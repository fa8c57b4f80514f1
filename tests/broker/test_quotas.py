"""`kops quotas` on a real broker; what is there, ``kafka-configs`` says."""

import re

import pytest

from support.apache_tools import CONFIGS

pytestmark = pytest.mark.broker
BAD = [
    (["set", "consumer_byte_rate=1MB"], "nothing says whose quota"),
    (["set", "--user", "x", "--default", "user", "consumer_byte_rate=1MB"], "both a user and the default user"),
    (["set", "--user", "x", "--ip", "10.0.0.1", "consumer_byte_rate=1MB"], "an ip has quotas of its own"),
    (["set", "--user", "", "consumer_byte_rate=1MB"], "the user is empty"),
    (["set", "--user", "x", "connection_creation_rate=5"], "has no quota 'connection_creation_rate'"),
    (["set", "--ip", "10.0.0.1", "consumer_byte_rate=5"], "has no quota 'consumer_byte_rate'"),
    (["set", "--user", "x", "consumer_byte_rate=0"], "a whole number above 0"),
    (["set", "--user", "x", "consumer_byte_rate=1.5"], "a whole number above 0"),
    (["set", "--user", "x", "request_percentage=nan"], "a number above 0"),
    (["set", "--user", "x", "request_percentage=viel"], "not a valid request_percentage"),
    (["explain", "--ip", "localhost"], "is not an IP address"),
]


def quotas(apache, *entity):
    """Return what ``kafka-configs`` shows for an entity."""
    printed = apache.run("--describe", *entity, CONFIGS)
    return {key: float(value) for key, value in re.findall(r"(\w+)=([0-9.E]+)", printed.partition(" are ")[2])}


def test_quotas_are_set_explained_removed_and_undone(kops, run_kops, broker, apache, unique, tmp_path):
    user, client = unique("user"), unique("client")
    of_user = ("--entity-type", "users", "--entity-name", user)
    pair = (*of_user, "--entity-type", "clients", "--entity-name", client)
    plan = kops("quotas", "set", "--user", user, "consumer_byte_rate=10MB", "--dry-run", "-o", "json").ok().json
    assert [(item["action"], item["before"], item["after"]) for item in plan["items"]] == [("set", None, 10_000_000)]
    assert quotas(apache, *of_user) == {}
    kops("quotas", "set", "--user", user, "consumer_byte_rate=10MB", "request_percentage=12.5", "--yes").ok()
    assert quotas(apache, *of_user) == {"consumer_byte_rate": 10_000_000, "request_percentage": 12.5}
    kops("quotas", "set", "--user", user, "--client-id", client, "consumer_byte_rate=2000", "--yes").ok()
    assert quotas(apache, *pair) == {"consumer_byte_rate": 2000}
    again = kops("quotas", "set", "--user", user, "consumer_byte_rate=10000000", "--yes").ok()
    assert "nothing to do" in again.err

    rows = {row["key"]: row for row in kops("quotas", "explain", "--user", user, "--client-id", client, "-o", "json").ok().json}
    assert (rows["consumer_byte_rate"]["value"], rows["consumer_byte_rate"]["rule"]) == (2000, f"user {user}, client-id {client}")
    assert (rows["request_percentage"]["value"], rows["request_percentage"]["shared_by"]) == (12.5, f"all clients of user {user}")
    assert (rows["producer_byte_rate"]["value"], rows["producer_byte_rate"]["rule"]) == (None, "none applies")
    listed = kops("quotas", "list", "--user", user, "-o", "json").ok().json
    assert [(row["client_id"], row["key"], row["value"]) for row in listed] == [
        (None, "consumer_byte_rate", 10_000_000),
        (None, "request_percentage", 12.5),
        (client, "consumer_byte_rate", 2000),
    ]

    kops("quotas", "set", "--user", user, "consumer_byte_rate=3000", "--plan-out", tmp_path / "plan").ok()
    kops("quotas", "remove", "--user", user, "--yes").ok()  # another operator
    assert quotas(apache, *of_user) == {}
    moved = kops("apply", tmp_path / "plan", "--yes")
    assert (moved.code, "changed since the plan was made" in moved.err) == (5, True)
    kops("undo", "last", "--yes").ok()
    assert quotas(apache, *of_user) == {"consumer_byte_rate": 10_000_000, "request_percentage": 12.5}
    kops("quotas", "remove", "--user", user, "request_percentage", "--yes").ok()
    assert quotas(apache, *of_user) == {"consumer_byte_rate": 10_000_000}
    for entity in (["--user", user], ["--user", user, "--client-id", client]):
        kops("quotas", "remove", *entity, "--yes").ok()
    assert kops("quotas", "remove", "--user", user, "--yes").code == 1


def test_quotas_of_an_address(kops, apache):
    kops("quotas", "set", "--ip", "10.9.8.7", "connection_creation_rate=25", "--yes").ok()
    assert quotas(apache, "--entity-type", "ips", "--entity-name", "10.9.8.7") == {"connection_creation_rate": 25}
    [row] = [
        row for row in kops("quotas", "explain", "--ip", "10.9.8.7", "-o", "json").ok().json if row["key"] == "connection_creation_rate"
    ]
    assert (row["value"], row["rule"]) == (25, "ip 10.9.8.7")
    kops("undo", "last", "--yes").ok()
    assert quotas(apache, "--entity-type", "ips", "--entity-name", "10.9.8.7") == {}


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_bad_input_is_exit_2(kops, arguments, said):
    refused = kops("quotas", *arguments, *(["--yes"] if arguments[0] == "set" else []))
    assert (refused.code, said in refused.err) == (2, True), refused.err
