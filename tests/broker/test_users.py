"""`kops users` on a real broker; who is there, ``kafka-configs`` says. Logins with the passwords: ``test_security.py``."""

import re
import stat

import pytest

from support.apache_tools import CONFIGS

pytestmark = pytest.mark.broker


def scram(apache, user):
    """Return the iterations of each mechanism, as ``kafka-configs`` shows them."""
    printed = apache.run("--describe", "--entity-type", "users", "--entity-name", user, CONFIGS)
    return {name: int(count) for name, count in re.findall(r"(SCRAM-SHA-\d+)=iterations=(\d+)", printed)}


def test_a_user_from_its_creation_to_its_deletion(kops, apache, unique, tmp_path, home):
    user, secret = unique("user"), tmp_path / "secret"
    secret.write_text("hush-4711\n")
    kops("users", "create", user, "--password-file", secret, "--iterations", "5000", "--dry-run").ok()
    assert scram(apache, user) == {}
    kops("users", "create", user, "--password-file", secret, "--iterations", "5000", "--plan-out", tmp_path / "plan").ok()
    kops("apply", tmp_path / "plan", "--yes").ok()
    assert scram(apache, user) == {"SCRAM-SHA-512": 5000}
    assert kops("users", "list", user, "-o", "json").ok().json == [{"user": user, "mechanism": "SCRAM-SHA-512", "iterations": 5000}]
    again = kops("apply", tmp_path / "plan", "--yes")  # as a second operator's
    assert (again.code, "changed since the plan was made" in again.err) == (5, True)
    assert kops("users", "create", user, "--password-file", secret, "--yes").code == 5

    made = tmp_path / "made"
    more = kops("users", "create", user, "--mechanism", "scram-sha-256", "--generate", made, "--yes").ok()
    assert scram(apache, user) == {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 5000}
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert "SCRAM-SHA-512 keeps its own password" in more.err
    kops("undo", "last", "--confirm", user).ok()
    assert scram(apache, user) == {"SCRAM-SHA-512": 5000}

    altered = kops("users", "alter", user, "--password-command", f"cat {secret}", "--iterations", "6000", "--confirm", user).ok()
    assert scram(apache, user) == {"SCRAM-SHA-512": 6000}
    assert "this cannot be undone" in altered.err
    assert "the old password cannot be read" in altered.err
    undone = kops("undo", "last", "--confirm", user)
    assert (undone.code, f"kops users alter {user}" in undone.err) == (5, True)
    kops("users", "delete", user, "--confirm", user).ok()
    assert scram(apache, user) == {}
    assert kops("users", "delete", user, "--confirm", user).code == 1

    kept = [made.read_text().strip(), "hush-4711"]
    texts = [path.read_text(errors="replace") for path in home.rglob("*") if path.is_file() and path not in {made, secret}]
    texts += [(tmp_path / "plan").read_text(), more.err, more.out, altered.err, altered.out]
    assert any(user in text for text in texts)
    assert not [text for text in texts for password in kept if password in text]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "x", "--iterations", "5"], "4096<=x<=16384"),
        (["create", "x", "--password", "y"], "No such option"),
        (["create", "x"], "no terminal to type the password at"),
        (["create", "x", "--password-file", "/nowhere", "--yes"], "/nowhere"),
        (["create", "x", "--password-command", "true", "--yes"], "is empty"),
        (["create", "x", "--password-command", "cat y", "--plan-out", "/nowhere/plan"], "a saved plan holds no password"),
        (["create", "x", "--password-file", "a", "--generate", "b"], "pass one of"),
        (["create", "x", "--generate", "/dev/null", "--yes"], "exists already"),
        (["create", "", "--password-file", "a"], "the name of the user is empty"),
    ],
)
def test_bad_input_is_exit_2(kops, apache, arguments, said):
    refused = kops("users", *arguments)
    assert (refused.code, said in refused.err) == (2, True), refused.err
    assert scram(apache, "x") == {}
