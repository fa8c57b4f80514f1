"""Which client properties of a context the tasks of a replay keep to."""

from dataclasses import replace

import pytest

from kops.config.connection import Connection, Oauth
from kops.core.errors import Refused
from kops.operations.archive.source import settings_of


def connection(**properties):
    return Connection(("b:9092",), client={name.replace("_", "."): value for name, value in properties.items()})


def test_what_only_tunes_passes():
    settings_of(connection(), "source")
    settings_of(connection(socket_keepalive_enable="true", reconnect_backoff_ms="50", client_id="me"), "source")


def test_what_cannot_be_kept_to_is_named():
    with pytest.raises(Refused, match=r"ssl\.curves\.list, ssl\.keystore\.location, which .* sets for the target"):
        settings_of(connection(ssl_keystore_location="/k.p12", ssl_curves_list="X25519"), "target")


def test_tokens_of_a_command_stay_on_this_machine():
    oauth = Oauth(token_command="cat token.jwt")
    tokens = Connection(("b:9092",), security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth=oauth)
    assert "oauth_cb" in settings_of(tokens, "source", "local[*]")
    with pytest.raises(Refused, match="cannot keep to oauth_token_command"):
        settings_of(tokens, "source", "spark://cluster:7077")
    settings_of(replace(tokens, oauth=Oauth(token_url="https://tokens", client_id="kops")), "source", "spark://cluster:7077")
