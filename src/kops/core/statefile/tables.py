"""Stores that are tables or made of tables: ``KTable`` of a topic or of another table, joins, and grouped tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kops.core.statefile.fields import Fields, nearest
from kops.core.statefile.models import INNER, JOINS, KEY_VALUE, LEFT, TABLE, TABLES, VERSIONED, Aggregation, Join, Store, Table
from kops.core.statefile.sources import FORMATS, Source, read_duration, read_form, read_internal_name
from kops.core.statefile.stores import read_aggregate, read_partitioner, read_source, read_timestamped
from kops.core.statefile.versions import VERSIONED_STORES, Version, line_of

_TABLE = ("from", "join", "where")
_STORE = ("type", *_TABLE, "key_by", "key_as", "repartition", "partitioner", "changelog", "aggregate", "timestamped")
_VERSIONED = ("type", "from", "history_retention", "changelog")
_JOIN = ("table", "type", "on", "value", "as")
_WITH_SUBTRACTION = ("count", "sum", "reducer")


class Tables:
    """The tables of a state file by name: its ``tables``, which have no store, and those of its stores that are tables.

    :param top: the state file
    """

    def __init__(self, top: Fields) -> None:
        self.top = top
        self._reading: list[str] = []

    def named(self, fields: Fields, field: str) -> Table:
        """Return the table that a field names.

        :raises ConfigError: if there is none, if it is not a table, or if it is made of itself
        """
        name = fields.needed(field, "the name of a table")
        for place in ("tables", "stores"):
            others = self.top.body.get(place)
            if isinstance(others, Mapping) and name in others:
                break
        else:
            known = [other for place in ("tables", "stores") for other in self.top.body.get(place) or {}]
            raise fields.wrong(
                field, f"names {name}, which is not one of the tables and stores", f"{nearest(name, known)}{', '.join(known)}"
            )
        if name in self._reading:
            raise fields.wrong(field, f"makes {name} of itself", "a table is made of others")
        self._reading.append(name)
        try:
            return self._table(self.top.inside(place), name, fields.wrong(field, f"names {name}, which is not a table"))
        finally:
            self._reading.pop()

    def _table(self, others: Fields, name: str, no_table: Exception) -> Table:
        body = others.inside(name)
        if others.place == "tables":
            return self.read(others.inside(name, _TABLE), name)
        if body.body.get("aggregate") is not None:
            raise no_table
        if body.body.get("to_table") and any(body.body.get(field) is not None for field in ("where", "key_by", "explode", "value")):
            raise body.wrong(
                "to_table", "is a table of what a stream makes of its records, and kops follows it no further than its own store"
            )
        if body.body.get("type") == VERSIONED:
            return versioned_table(others.inside(name, _VERSIONED), name)
        return self.read(body, name)

    def read(self, fields: Fields, name: str) -> Table:
        if not names_table(fields):
            source = read_source(fields)
            made = Table(name, fields.place, source.key, source.value, source=source)
        else:
            parent = self.named(fields.inside("from", ("table",)), "table")
            made = Table(name, fields.place, parent.key, parent.form, parent=parent)
        if fields.body.get("join") is not None:
            join = self._join(fields.inside("join", _JOIN), made)
            made = replace(made, join=join, form=join.form)
        return replace(made, where=fields.text("where"), timestamped=read_timestamped(fields))

    def _join(self, fields: Fields, left: Table) -> Join:
        right = self.named(fields, "table")
        kind, on = fields.one_of("type", JOINS, INNER), fields.text("on")
        if on is None and right.key.name != left.key.name:
            raise fields.wrong("table", f"has keys of the format {right.key}, and those on the left are {left.key}", "join by `on` then")
        if on is not None and kind not in (INNER, LEFT):
            raise fields.wrong("type", "is outer, and a foreign-key join is inner or left")
        if on is not None and (left.joins or right.joins):
            raise fields.wrong("on", "joins a table that is itself a join", "kops follows foreign keys between tables of topics")
        value = fields.needed("value", "Spark SQL of key, left and right, such as concat(left, right)")
        if fields.body.get("as") is None:
            raise fields.wrong("as", "is missing: the format of the joined value", f"one of: {', '.join(FORMATS)}")
        return Join(kind, right, value, read_form(fields, "as"), on)


def names_table(fields: Fields) -> bool:
    origin = fields.body.get("from")
    return isinstance(origin, Mapping) and "table" in origin


def is_table_store(fields: Fields) -> bool:
    return names_table(fields) or fields.body.get("join") is not None


def read_table_store(tables: Tables, stores: Fields, name: str, application: str) -> Store:
    """Read a store that holds a table made of others, or an aggregate of a grouped table."""
    fields = stores.inside(name, _STORE)
    fields.one_of("type", (KEY_VALUE,), KEY_VALUE)
    table = tables.read(fields, name)
    key_by = fields.text("key_by")
    grouped = fields.body.get("aggregate") is not None
    if grouped != (key_by is not None):
        raise fields.wrong(
            "key_by" if grouped else "aggregate", "is missing", "KTable.groupBy takes a new key, and a grouped table an aggregate"
        )
    if table.foreign and grouped:
        raise fields.wrong("key_by", "groups a foreign-key join", "kops follows a foreign-key join no further than its own store")
    first, *others = table.sources
    _refuse_two_starts(fields, table)
    return Store(
        name=name,
        source=first,
        others=tuple(others),
        aggregate=_aggregate(fields, table) if grouped else Aggregation(TABLE, table.form),
        key_form=read_form(fields, "key_as", "string") if key_by else table.key,
        changelog=read_internal_name(fields, "changelog", application, name),
        key_by=key_by,
        repartition_topic=read_internal_name(fields, "repartition", application, name) if key_by else None,
        type=TABLES,
        table=table,
        custom_partitioner=read_partitioner(fields),
        timestamped=table.timestamped,
    )


def _refuse_two_starts(fields: Fields, table: Table) -> None:
    """Refuse tables of one topic that disagree on where it starts: a task reads it only once."""
    for source in table.every_source:
        if any(other.start != source.start for other in table.every_source if other.topic == source.topic):
            raise fields.wrong("from", f"is made of {source.topic}, which begins at two places", "give its tables the same start")


def _aggregate(fields: Fields, table: Table) -> Aggregation:
    aggregate = read_aggregate(fields, Source("", table.key, table.form))
    if aggregate.kind not in _WITH_SUBTRACTION:
        what = f"is {aggregate.kind}, which cannot subtract what left a group"
        raise fields.wrong("aggregate", what, f"of a grouped table: {', '.join(_WITH_SUBTRACTION)}")
    return aggregate


def read_versioned_store(stores: Fields, name: str, kind: str, application: str, version: Version | None = None) -> Store:
    """Read a versioned table of a topic (``Stores.persistentVersionedKeyValueStore``, KIP-889)."""
    fields = stores.inside(name, _VERSIONED)
    if version is not None and line_of(version) < VERSIONED_STORES:
        raise fields.wrong("type", f"is {kind}, which kafka-streams has from 3.5 on", "correct streams.version, or the type")
    table = versioned_table(fields, name)
    source = table.sources[0]
    return Store(
        name=name,
        source=source,
        aggregate=Aggregation(TABLE, source.value),
        key_form=source.key,
        changelog=read_internal_name(fields, "changelog", application, name),
        type=kind,
        history_ms=table.history_ms,
    )


def versioned_table(fields: Fields, name: str) -> Table:
    source = read_source(fields)
    return Table(name, fields.place, source.key, source.value, source=source, history_ms=read_duration(fields, "history_retention", None))


def with_source_changelog(fields: Fields, store: Store, *, named: bool) -> Store:
    """Let the source topic serve as changelog of a table of a topic, as ``topology.optimization`` does.

    :param named: whether the state file names a changelog
    """
    if store.aggregate.kind != TABLE or store.table is not None or named:
        return store
    if store.source.start is not None:
        what = f"says where {store.source.topic} began, and topology_optimization: all restores the table from the whole of it"
        raise fields.wrong("from.start", what, "leave it out, or name the changelog if the table has its own")
    if store.output is not None:
        what = f"is of a table that the application restores from {store.source.topic} itself (topology_optimization: all)"
        raise fields.wrong("output", what, "leave it out, or name the changelog if the table has its own")
    return replace(store, changelog=store.source.topic, reuses_source=True)
