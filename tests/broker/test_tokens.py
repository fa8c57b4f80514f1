"""`kops tokens` on a secured broker; which tokens there are, and whether one lets a client in, Apache's tools say."""

import stat

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kops.cli.frame.session import Session
from kops.operations.completion import TOKENS as COMPLETED
from kops.operations.completion import names
from kops.sandbox.settings import client_settings
from support.apache_tools import TOPICS, ApacheTools
from support.json_keys import as_pinned, keys_of
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
KEYS = {"token", "owner", "requester", "state", "issued_at", "expires_at", "ends_at", "renewers[]"}


@pytest.fixture(scope="module")
def secured(own_brokers):
    return own_brokers(security="acl")


@pytest.fixture
def kops(run_kops, secured, contexts):
    contexts(secured=secured.sandbox.context())
    return lambda *arguments: run_kops(*arguments, "-c", "secured")


@pytest.fixture(scope="module")
def apache(secured, jdk):
    with ApacheTools(secured.bootstrap_servers) as running:
        own = secured.sandbox.directory / "client.properties"
        yield lambda *arguments, settings=own: running.run("--command-config", str(settings), *arguments)


@pytest.fixture
def there(apache):
    """Return what ``kafka-delegation-tokens`` shows of two owners: by token its HMAC, owner, requester, renewers and expiry.

    Without an owner it shows none, whatever there is.
    """

    def look():
        lines = apache("--describe", "--owner-principal", "User:kops", "--owner-principal", "User:reports", TOKENS).splitlines()
        rows = [line.split() for line in lines if "User:" in line and not line.startswith("Calling")]
        return {row[0]: row[1:] for row in rows}

    return look


def expiry(kops, token):
    (row,) = [row for row in kops("tokens", "list", "-o", "json").ok().json if row["token"] == token]
    return row["expires_at"]


def test_a_token_from_its_creation_to_its_end(kops, apache, there, secured, unique, tmp_path, home):
    file = tmp_path / "hmac"
    create = ("tokens", "create", "--to", file, "--renewer", "alice", "--max-life", "2h")
    kops(*create, "--dry-run").ok()
    assert (file.exists(), there()) == (False, {})
    kops(*create, "--plan-out", tmp_path / "plan").ok()
    done = kops("apply", tmp_path / "plan", "--yes", "-o", "json").ok()
    assert keys_of(done.out) == {"items[].status", "items[].target", "items[].value", "journal_id", "messages[]", "status", "version"}
    (found,) = there().items()
    token, (hmac, owner, *_) = found
    assert (file.read_text(), owner) == (f"{hmac}\n", "User:kops")
    assert names(Session({"context": "secured"}), COMPLETED, token[:3], seconds=HANG_SECONDS) == [token]
    assert "User:alice" in " ".join(found[1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert done.json["items"][0]["value"]["token"] == token
    again = kops("apply", tmp_path / "plan", "--yes")
    assert (again.code, "exists" in again.err, len(there())) == (5, True, 1)

    client = client_settings(secured.sandbox)
    login = f'username="{token}" password="{hmac}" tokenauth="true"'
    client["sasl.jaas.config"] = f"org.apache.kafka.common.security.scram.ScramLoginModule required {login};"
    by_token = tmp_path / "by-token.properties"
    by_token.write_text("".join(f"{key}={value}\n" for key, value in client.items()))
    made = unique("t")
    admin = AdminClient(secured.client)
    admin.create_topics([NewTopic(made, 1, 1)])[made].result(HANG_SECONDS)
    assert made in apache("--list", TOPICS, settings=by_token)

    listed = kops("tokens", "list", "kops", "-o", "json").ok()
    as_pinned("kops tokens list", listed)
    before = expiry(kops, token)
    assert before[:16] in " ".join(there()[token])
    renewed = kops("tokens", "renew", token, "--for", "30m", "--plan-out", tmp_path / "late").ok()
    kops("tokens", "renew", token, "--for", "20m", "--yes").ok()
    assert expiry(kops, token) < before
    late = kops("apply", tmp_path / "late", "--yes")
    assert (late.code, "now expires at" in late.err) == (5, True)
    kops("undo", "last", "--yes").ok()
    assert expiry(kops, token) == before
    kops("tokens", "expire", token, "--in", "10m", "--yes").ok()
    assert expiry(kops, token) < before
    kops("undo", "last", "--yes").ok()
    assert expiry(kops, token) == before
    removed = kops("tokens", "expire", token, "--confirm", token).ok()
    assert there() == {}
    assert "this cannot be undone" in removed.err
    undone = kops("undo", "last", "--confirm", token)
    assert (undone.code, "cannot be restored" in undone.err) == (5, True)
    assert kops("tokens", "renew", token, "--yes").code == 1

    texts = [path.read_text(errors="replace") for path in home.rglob("*") if path.is_file()]
    texts += [(tmp_path / "plan").read_text(), done.out, done.err, listed.out, renewed.out, renewed.err, removed.err]
    assert any(token in text for text in texts)
    assert not [text for text in texts if hmac in text]


def test_undo_of_a_creation_removes_the_token_that_brokers_let_it_remove(kops, there, tmp_path):
    kops("tokens", "create", "--owner", "reports", "--renewer", "kops", "--to", tmp_path / "hmac", "--yes").ok()
    assert [row[1] for row in there().values()] == ["User:reports"]
    (token,) = there()
    kops("undo", "last", "--confirm", token).ok()
    assert there() == {}


def test_brokers_do_not_let_the_creator_of_anothers_token_end_it(kops, there, tmp_path):
    made = kops("tokens", "create", "--owner", "other", "--to", tmp_path / "hmac", "--yes", "-o", "json").ok()
    said = " ".join(made.err.split())
    assert ("this cannot be undone" in said, "--renewer User:kops would make" in said) == (True, True)
    token = made.json["items"][0]["value"]["token"]
    for refused in (kops("undo", "last", "--yes"), kops("tokens", "expire", token, "--confirm", token), kops("tokens", "renew", token)):
        assert (refused.code, "only User:other can renew" in refused.err) == (5, True), refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create"], 2, "--to"),
        (["create", "--to", "/dev/null", "--yes"], 2, "exists already"),
        (["create", "--to", "/nowhere/hmac", "--yes"], 2, "/nowhere/hmac"),
        (["create", "--to", "x", "--owner", "", "--yes"], 2, "not a principal"),
        (["create", "--to", "x", "--max-life", "0s", "--yes"], 2, "has to last"),
        (["renew", "no-such-token", "--for", "soon"], 2, "not a valid duration"),
        (["expire", "no-such-token", "--yes"], 1, "there is no token no-such-token"),
    ],
)
def test_what_is_wrong_changes_nothing(kops, there, arguments, code, said):
    before = there()
    refused = kops("tokens", *arguments)
    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert there() == before


def test_brokers_without_the_secret_key_or_a_login_say_so(run_kops, broker, tmp_path):
    refused = run_kops("tokens", "create", "--to", tmp_path / "hmac", "--yes", "-B", broker.bootstrap_servers)
    assert (refused.code, (tmp_path / "hmac").exists()) == (1, False), refused.err
