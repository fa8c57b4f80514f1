"""Which client properties of a context the tasks of a replay keep to."""

import pytest

from kops.config.connection import Connection
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
