"""From the YAML of a state file, already loaded, to what it says."""

from __future__ import annotations

from typing import Any

from kops.core.statefile.fields import Fields
from kops.core.statefile.forms import NAME, read_name
from kops.core.statefile.models import GUARANTEES, KEY_VALUE, StateFile, Store
from kops.core.statefile.stores import read_stream_store

_TOP = ("application", "streams", "stores")
_READERS = {
    KEY_VALUE: read_stream_store,
}
"""What reads a store, by its type: ``(stores, name, type, application) -> Store``."""


def parse_state_file(path: str, body: Any) -> StateFile:
    """Read a state file.

    :param path: for messages
    :param body: what YAML made of it
    :raises ConfigError: naming the file, the field and the nearest name
    """
    top = Fields(path, "", body, _TOP)
    application = read_name(top, "application", "the application.id of the Kafka Streams application")
    streams = Fields(path, "streams", body.get("streams") or {}, ("version", "guarantee"))
    stores = top.inside("stores")
    if not stores.body:
        raise top.wrong("stores", "has no stores")
    return StateFile(
        path=path,
        application=application,
        stores=tuple(_store(stores, name, application) for name in stores.body),
        guarantee=streams.one_of("guarantee", GUARANTEES, GUARANTEES[0]),
        streams_version=streams.text("version"),
    )


def _store(stores: Fields, name: str, application: str) -> Store:
    if not NAME.fullmatch(name):
        raise stores.wrong(name, "is not a name that a store can have", "letters, digits, dot, underscore and hyphen")
    kind = stores.inside(name).one_of("type", _READERS, KEY_VALUE)
    return _READERS[kind](stores, name, kind, application)
