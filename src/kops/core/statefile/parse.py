"""From the parsed YAML of a state file to its contents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from kops.core.models import ISOLATIONS, READ_COMMITTED, READ_UNCOMMITTED
from kops.core.statefile.fields import Fields
from kops.core.statefile.models import (
    FAUST,
    GUARANTEES,
    JSON_MODULES,
    KAFKA_STREAMS,
    KEY_VALUE,
    PLAIN,
    SESSION,
    SLIDING,
    VERSIONED,
    WINDOW,
    StateFile,
    Store,
)
from kops.core.statefile.sources import NAME, Form, read_name
from kops.core.statefile.stores import read_stream_store
from kops.core.statefile.tables import Tables, is_table_store, read_table_store, read_versioned_store, with_source_changelog
from kops.core.statefile.versions import Version, read_version

_TOP = ("application", "streams", "tables", "stores")
_OPTIMIZATION = ("none", "all")
_STREAMS = ("library", "json", "version", "guarantee", "isolation", "cache", "topology_optimization")
_READERS = {
    KEY_VALUE: read_stream_store,
    WINDOW: read_stream_store,
    SLIDING: read_stream_store,
    SESSION: read_stream_store,
    PLAIN: read_stream_store,
    VERSIONED: read_versioned_store,
}
"""The reader of a store, by its type: ``(stores, name, type, application, version) -> Store``."""


def parse_state_file(path: str, body: Any, plugin_formats: Callable[[], Collection[str]] = tuple) -> StateFile:
    """Parse a state file.

    :param path: for messages
    :param body: the parsed YAML
    :param plugin_formats: lists the formats that plugins provide
    :raises ConfigError: naming the file, the field and the most similar name
    """
    top = Fields(path, "", body, _TOP, plugin_formats=plugin_formats)
    application = read_name(top, "application", "the application.id of the Kafka Streams application")
    streams = Fields(path, "streams", body.get("streams") or {}, _STREAMS)
    stores = top.inside("stores")
    if not stores.body:
        raise top.wrong("stores", "has no stores")
    library = streams.one_of("library", (KAFKA_STREAMS, FAUST), KAFKA_STREAMS)
    if library != FAUST and streams.body.get("json") is not None:
        raise streams.wrong("json", "only means something with library: faust")
    optimized = streams.one_of("topology_optimization", _OPTIMIZATION, "none") == "all"
    guarantee = streams.one_of("guarantee", GUARANTEES, GUARANTEES[0])
    read = _faust_table if library == FAUST else _store
    version = read_version(streams) if library != FAUST else None
    return StateFile(
        path=path,
        application=application,
        stores=tuple(read(top, stores, name, application, version, optimized=optimized) for name in stores.body),
        guarantee=guarantee,
        isolation=_isolation(streams, guarantee),
        says_isolation=guarantee != GUARANTEES[0] or "isolation" in streams.body,
        streams_version=streams.text("version"),
        version=version,
        cache=streams.flag("cache", "false if statestore.cache.max.bytes is 0, otherwise true", default=True),
        library=library,
        json_module=streams.one_of("json", JSON_MODULES, JSON_MODULES[0]),
        digest=hashlib.sha256(repr(body).encode()).hexdigest(),
    )


def _isolation(streams: Fields, guarantee: str) -> str:
    """Read the isolation level of the application's consumer; with exactly-once Kafka Streams always sets ``read_committed``."""
    default = READ_UNCOMMITTED if guarantee == GUARANTEES[0] else READ_COMMITTED
    found = streams.one_of("isolation", ISOLATIONS, default)
    if found == READ_UNCOMMITTED and default == READ_COMMITTED:
        raise streams.wrong("isolation", f"is {found}, and with {guarantee} Kafka Streams reads what is committed", "leave it out")
    return found


def _store(top: Fields, stores: Fields, name: str, application: str, version: Version | None, *, optimized: bool) -> Store:
    if not NAME.fullmatch(name):
        raise stores.wrong(name, "is not a name that a store can have", "letters, digits, dot, underscore and hyphen")
    fields = stores.inside(name)
    if is_table_store(fields):
        return read_table_store(Tables(top), stores, name, application)
    kind = fields.one_of("type", _READERS, KEY_VALUE)
    store = _READERS[kind](stores, name, kind, application, version)
    reusable = optimized and not store.to_table
    return with_source_changelog(fields, store, named=fields.body.get("changelog") is not None) if reusable else store


def _faust_table(top: Fields, stores: Fields, name: str, application: str, version: Version | None, *, optimized: bool) -> Store:
    """Read a table of Faust: its keys are JSON unless they are bytes (``Collection._serializer_from_type``)."""
    store = _store(top, stores, name, application, version, optimized=optimized)
    if store.type != KEY_VALUE or store.key_by or store.table or store.reuses_source or store.to_table:
        raise stores.wrong(name, "is more than a table by the record's own key", "of Faust, kops knows no windows and no joins")
    if store.output:
        raise stores.inside(name).wrong("output", "is of a table of Faust, which keeps no timestamps to compare with", "leave it out")
    if store.source.key.is_only_read:
        raise stores.wrong(name, f"has keys in {store.source.key}, and kops writes those of Faust's tables as JSON or bytes only")
    return replace(store, key_form=store.source.key if store.source.key.name in ("bytes", "json") else Form("json"))
