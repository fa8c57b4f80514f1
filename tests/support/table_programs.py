"""Programs of tables, joins and groups, each beside what a state file says of it, and what values their inputs may have."""

from __future__ import annotations

import re

from support.table_cases import Case, cases
from support.tables import TableProgram

HISTORY = 5
"""Milliseconds that a versioned table keeps."""
TEXT = {"key": "string", "value": "string"}
JSON = {"key": "string", "value": {"format": "json", "schema": "r string, n bigint"}}
LEFT, RIGHT = [b"l1", b"l2", b""], [b"r1", b"r2"]
ALL_THERE = [b'{"r":"x","n":1}', b'{"r":"y","n":-7}', b'{"r":"x","n":2}', b'{"r":"y","n":9}']
REGIONS = [b'{"r":"x","n":1}', b'{"r":"y","n":-7}', b'{"r":"x","n":9223372036854775807}', b'{"r":null,"n":3}', b'{"r":"z"}']
PREFERENCES = [b'{"n":20}', b'{"n":29}', b'{"n":30}', b'{"n":31}']
FOREIGN = {"left": [b'{"f":"a"}', b'{"f":"b"}', b'{"f":"none"}', b"{}"], "right": RIGHT}
PAIR = "concat(coalesce(left, '-'), '|', coalesce(right, '-'))"


def table(name, topic, form):
    return {"name": name, "topic": topic, "key": "string", "value": form}


def from_topic(topic, how):
    return {"from": {"topic": topic, **how}}


def joined(kind, *, where=None, parent="l", right="r"):
    return {
        "from": {"table": parent},
        "join": {"table": right, "type": kind, "value": PAIR, "as": "string"},
        **({"where": where} if where else {}),
    }


TWO = (table("l", "left", "string"), table("r", "right", "string"))
TWO_STORES = {"l": from_topic("left", TEXT), "r": from_topic("right", TEXT)}


def join_program(kind):
    """A join; the same filtered and joined again, with nothing between stored; both at once."""
    return TableProgram(
        (
            *TWO,
            {"name": "j", "join": {"left": "l", "right": "r", "kind": kind, "as": "string"}},
            {"name": "f", "filter": {"table": "j", "op": "ne", "value": "l1|r1"}, "store": True},
        ),
        {
            **TWO_STORES,
            "j": joined(kind),
            "f": {"from": {"table": "j"}, "where": "value <> 'l1|r1'"},
        },
    )


def grouped(kind, **aggregate):
    """Groups of one table by a field."""
    field, form = aggregate.pop("field", None), aggregate.get("as", "long")
    return TableProgram(
        (
            table("t", "left", "json"),
            {"name": "f", "filter": {"table": "t", "field": "n", "op": "lt", "value": 5}},
            {"name": "g", "group": {"table": "f", "field": "r", "as": "string"}, "aggregate": {"kind": kind, "field": field, "as": form}},
        ),
        {
            "t": from_topic("left", JSON),
            "g": {"from": {"table": "t"}, "where": "value.n < 5", "key_by": "value.r", "aggregate": aggregate},
        },
    )


def regions(kind):
    """Users joined with preferences, those under 30 counted per region."""
    return TableProgram(
        (
            table("l", "left", "json"),
            table("r", "right", "json"),
            {"name": "j", "join": {"left": "l", "right": "r", "kind": kind, "as": "json"}, "store": False},
            {"name": "f", "filter": {"table": "j", "field": "n", "op": "lt", "value": 30}},
            {"name": "g", "group": {"table": "f", "field": "r", "as": "string"}, "aggregate": {"kind": "count", "as": "long"}},
        ),
        {
            "l": from_topic("left", JSON),
            "r": from_topic("right", JSON),
            "g": {
                "from": {"table": "l"},
                "join": {"table": "r", "type": kind, "value": "named_struct('r', left.r, 'n', coalesce(right.n, left.n))", "as": "json"},
                "where": "value.n < 30",
                "key_by": "value.r",
                "aggregate": {"count": True},
            },
        },
    )


def foreign(kind):
    """A foreign-key join."""
    form = {"format": "json", "schema": "f string"}
    return TableProgram(
        (
            *(table("l", "left", "json"), table("r", "right", "string")),
            {"name": "j", "join": {"left": "l", "right": "r", "kind": kind, "on": "f", "as": "string"}},
        ),
        {
            "l": {"from": {"topic": "left", "key": "string", "value": form}},
            "r": from_topic("right", TEXT),
            "j": {
                "from": {"table": "l"},
                "join": {
                    "table": "r",
                    "type": kind,
                    "on": "left.f",
                    "value": "concat(to_json(left), '|', coalesce(right, '-'))",
                    "as": "string",
                },
            },
        },
    )


def mark_region(value: bytes, number: int) -> bytes:
    """Groups of several cases meet nowhere: each has its own."""
    return re.sub(rb'"r":"', b'"r":"%d:' % number, value)


def same(value: bytes, _number: int) -> bytes:
    return value


def versioned_program(kind):
    """A join whose left side is a versioned table, and groups of such a table: what is not its key's latest changes nothing (KIP-914)."""
    left = {"type": "versioned", "history_retention": f"{HISTORY}ms", **from_topic("left", TEXT)}
    return TableProgram(
        (
            {**TWO[0], "history_ms": HISTORY},
            TWO[1],
            {"name": "j", "join": {"left": "l", "right": "r", "kind": kind, "as": "string"}},
        ),
        {"l": left, "r": TWO_STORES["r"], "j": joined(kind)},
    )


BY_TIME = {
    "inner": (join_program("inner"), ("j", "f"), same),
    "left": (join_program("left"), ("j",), same),
    "outer": (join_program("outer"), ("f",), same),
    "versioned-inner": (versioned_program("inner"), ("j",), same),
    "versioned-left": (versioned_program("left"), ("j",), same),
    "count": (grouped("count", count=True), ("g",), mark_region),
    "sum": (grouped("sum", sum="value.n", **{"as": "long"}, field="n"), ("g",), mark_region),
    "reduce": (grouped("reduce", sum="value.n", **{"as": "long"}, field="n"), ("g",), mark_region),
    "members": (grouped("members", reducer="support.reducers:Members", **{"as": "string"}, field="n"), ("g",), mark_region),
    "regions-inner": (regions("inner"), ("g",), mark_region),
    "regions-left": (regions("left"), ("g",), mark_region),
}


def inputs(program: TableProgram, count: int, *, by_time: bool = True) -> list[Case]:
    """Return random inputs that fit a program."""
    if any("on" in one.get("join", {}) for one in program.tables):
        return cases(FOREIGN, count, by_time=by_time)
    json = program.tables[0]["value"] == "json"
    members = any("reducer" in store.get("aggregate", {}) for store in program.stores.values())
    topics = {"left": ALL_THERE if members else REGIONS if json else LEFT}
    if any(one.get("topic") == "right" for one in program.tables):
        topics["right"] = PREFERENCES if json else RIGHT
    return cases(topics, count, by_time=by_time)
