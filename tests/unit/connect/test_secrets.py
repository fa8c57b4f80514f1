"""Secrets of connectors: which settings they are, and that nothing of them shows."""

import pytest

from kops.core.connect_secrets import HIDDEN, digest, is_secret_name, masked, scrubbed, secret_texts
from kops.operations.connect.sealed import Sealed, seal

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("connection.password", True),
        ("database.password", True),
        ("producer.override.sasl.jaas.config", True),
        ("value.converter.basic.auth.user.info", True),
        ("aws.secret.access.key", True),
        ("ssl.key.password", True),
        ("api_key", True),
        ("azblob.account.key", True),
        ("key.converter", False),
        ("connection.user", False),
        ("database.password.file", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("topics", False),
    ],
)
def test_names(name, secret):
    assert is_secret_name(name) is secret


def test_what_is_shown():
    config = {
        "connection.password": "hunter2",
        "ssl.key.password": "${file:/run/secrets:key}",
        "pin": "1234",
        "connection.url": "jdbc:postgresql://me:hunter2@db/shop?password=hunter2&ssl=true",
        "other.url": "http://me:${env:PW}@db",
        "topics": "orders",
    }
    shown = masked(config, {"pin"})
    assert shown == {
        "connection.password": HIDDEN,
        "ssl.key.password": "${file:/run/secrets:key}",
        "pin": HIDDEN,
        "connection.url": f"jdbc:postgresql://me:{HIDDEN}@db/shop?password={HIDDEN}&ssl=true",
        "other.url": "http://me:${env:PW}@db",
        "topics": "orders",
    }
    assert secret_texts(config, {"pin"}) == {"hunter2", "1234"}
    assert scrubbed("it is hunter2, and //a:b@c", {"hunter2"}) == f"it is {HIDDEN}, and //a:b@c"
    assert scrubbed("jdbc:x://u:pw@h", ()) == f"jdbc:x://u:{HIDDEN}@h"


def test_a_sealed_configuration_opens_only_with_the_very_secrets():
    config = {"name": "c", "connection.password": "hunter2", "url": "x://u:pw@h", "topics": "t"}
    sealed = Sealed(**seal(config, (), KEY).as_json())
    assert "hunter2" not in str(sealed)
    assert "u:pw" not in str(sealed)
    assert sealed.opened([{"connection.password": "other"}, config], KEY) == ({key: config[key] for key in config if key != "name"}, [])
    assert sealed.opened([{"connection.password": "other"}], KEY)[1] == ["connection.password", "url"]
    assert digest("a", KEY) != digest("a", b"x" * 32)
