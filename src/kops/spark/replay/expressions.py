"""Records in transit: decoded, chosen, changed and routed by Spark SQL. DataFrame to DataFrame, each row by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kops.core.errors import ConfigError, UsageProblem
from kops.core.statefile.sources import Form
from kops.spark.reading.codec import WIDENS, decoding, encoding, sql_type
from kops.spark.reading.ranges import HEADERS_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("partition", "offset", "topic", "target_partition", "key", "value", "timestamp_ms", "headers")
"""The columns of the rows that are sent."""
_RECORD = ("partition", "offset", "key", "value", "timestamp_ms", "headers")
_PLACES = {None: "partition", "keep": "partition", "key": "cast(null as int)"}
_PARTS = ("struct", "array", "map")
_ROUNDS = (("double", "bigint"), ("float", "int"), ("float", "bigint"))
"""Conversions that Java makes by itself although they round: a number is only sent on rounded where the expression says so."""


def decoded(records: DataFrame, topic: str, key: Form, value: Form, *, skip: bool, more: Sequence[str] = ()) -> DataFrame:
    """Add what expressions refer to: ``key`` and ``value`` decoded, ``timestamp``, ``topic``; keep the bytes as ``_key`` and ``_value``.

    :param records: as returned by ``BatchSource.read``, with headers; nothing is added for missing ones of key, value, timestamp_ms,
        headers
    :param skip: leave out records that are not in the declared formats; otherwise such a record fails the job
    :param more: columns of the records to keep
    :raises UsageProblem: when the schema of a format is not valid
    """
    there = set(records.columns)
    raw = records.selectExpr(
        *(f"{name} as _{name}" for name in ("key", "value") if name in there),
        "partition",
        "offset",
        *(name for name in ("timestamp_ms",) if name in there),
        *(f"coalesce(headers, cast(array() as {HEADERS_TYPE})) as headers" for name in ("headers",) if name in there),
        *more,
    )
    try:
        decodings = {name: decoding(f"_{name}", form) for name, form in (("key", key), ("value", value)) if name in there}
        seen = raw.selectExpr(
            "*",
            *(f"{each.value} as {name}" for name, each in decodings.items()),
            *("timestamp_millis(timestamp_ms) as timestamp" for name in ("timestamp_ms",) if name in there),
            f"'{topic}' as topic",
        ).where("true")
        for name, each in decodings.items():
            if each.is_wrong is None:
                continue
            said = f"concat('the {name} of {topic}:', partition, ' at offset ', offset, ' is not of its format')"
            fine = f"not {each.judged(name)}"
            seen = seen.where(fine if skip else f"if({fine}, true, raise_error({said}) is null)")
    except ConfigError:
        raise
    except Exception as error:
        raise _refused("a format", f"{key.schema or value.schema}", error) from error
    return seen


def changed(
    seen: DataFrame, where: str | None, *, assignments: Mapping[str, str], headers: Mapping[str, str], key: Form, value: Form
) -> DataFrame:
    """Choose and change records.

    :param assignments: ``key``, ``value``, ``timestamp`` -> expression
    :param headers: name -> expression; all expressions refer to the record as it was
    :raises UsageProblem: when Spark does not accept an expression, or its type does not fit
    """
    seen = _chosen(seen, where)
    new = {"key": "_key", "value": "_value", "timestamp_ms": "timestamp_ms", **_assigned(seen, assignments, key, value)}
    more = "headers"
    for name, expression in headers.items():
        quoted = name.replace("\\", "\\\\").replace("'", "\\'")
        content = _bytes(seen, f"headers[{name}]", expression, Form("bytes"))
        others = f"filter({more}, each -> each.key != '{quoted}')"
        added = f"array(named_struct('key', '{quoted}', 'value', {content}))"
        more = f"if({content} is null, {others}, concat({others}, cast({added} as {HEADERS_TYPE})))"
    kept = [name for name in seen.columns if name not in ("headers", "timestamp_ms")]
    return seen.selectExpr(
        *kept, f"{new['key']} as new_key", f"{new['value']} as new_value", f"{new['timestamp_ms']} as timestamp_ms", f"{more} as headers"
    )


def new_content(
    seen: DataFrame,
    where: str | None,
    *,
    assignments: Mapping[str, str],
    headers: Mapping[str, str],
    topic: str | None,
    partition: str | None,
    key: Form,
    value: Form,
) -> DataFrame:
    """Choose records, and compute only their new content, in the format of ``columns.send_changed``.

    :param partition: an expression; None: the partition is not computed
    """
    from kops.spark.replay.columns import HEADER, literal

    seen = _chosen(seen, where)
    new = [f"{expression} as {name}" for name, expression in _assigned(seen, assignments, key, value).items()]
    for number, (name, expression) in enumerate(headers.items()):
        if literal(expression) is None:
            new.append(f"{_bytes(seen, f'headers[{name}]', expression, Form('bytes'))} as {HEADER}{number}")
    if topic is not None:
        new.append(f"{_topic(seen, topic)} as topic")
    if partition is not None:
        new.append(f"{_number(seen, partition)} as target_partition")
    return seen.selectExpr("offset", *new)


def _assigned(seen: DataFrame, assignments: Mapping[str, str], key: Form, value: Form) -> dict[str, str]:
    """Return the new values of those of the columns ``key``, ``value`` and ``timestamp_ms`` that are set."""
    forms = {"key": key, "value": value}
    found = {name: _bytes(seen, name, assignments[name], form) for name, form in forms.items() if name in assignments}
    if "timestamp" in assignments:
        found["timestamp_ms"] = _milliseconds(seen, assignments["timestamp"])
    return found


def _chosen(seen: DataFrame, where: str | None) -> DataFrame:
    if where is None:
        return seen
    kind = _type_of(seen, "--where", where)
    if kind != "boolean":
        raise UsageProblem(f"--where {where} is {kind}, not a condition", hint="such as: value.price is not null")
    return seen.where(where)


def _topic(seen: DataFrame, expression: str) -> str:
    if (kind := _type_of(seen, "--to-expression", expression)) != "string":
        raise UsageProblem(f"--to-expression {expression} is {kind}, not a name", hint="such as: concat('orders-', value.region)")
    return f"({expression})"


def _number(seen: DataFrame, expression: str) -> str:
    kind = _type_of(seen, "--partition-by", expression)
    if kind not in WIDENS["bigint"]:
        raise UsageProblem(f"--partition-by {expression} is {kind}, not a number", hint="key, keep, or such as: pmod(value.customer, 6)")
    # A number beyond an int is not a partition: its lowest 32 bits would be another one.
    return f"cast(if(({expression}) between 0 and {2**31 - 1}, {expression}, -1) as int)"


def placed(seen: DataFrame, topic: str | None, partition: str | None) -> tuple[DataFrame, str | None, str | None]:
    """Decide where each record goes by its content before the changes; return the arguments for ``routed``."""
    named = {"_to_topic": topic and _topic(seen, topic)}
    if partition not in _PLACES:
        named["_to_partition"] = _number(seen, str(partition))
    found = {name: expression for name, expression in named.items() if expression}
    seen = seen.selectExpr("*", *(f"{expression} as {name}" for name, expression in found.items()))
    return seen, "_to_topic" if topic else None, "_to_partition" if "_to_partition" in found else partition


def routed(records: DataFrame, topic: str | None, partition: str | None, target: str) -> DataFrame:
    """Decide where each record goes, and keep only what is sent (``COLUMNS``).

    :param topic: an expression; None if all go to ``target``
    :param partition: ``keep``, ``key`` or an expression; for ``key`` the writer computes it
    """
    chosen = _PLACES.get(partition) or _number(records, str(partition))
    to = _topic(records, topic) if topic is not None else f"'{target}'"
    return records.selectExpr(
        "partition",
        "offset",
        f"{to} as topic",
        f"{chosen} as target_partition",
        "new_key as key",
        "new_value as value",
        "timestamp_ms",
        "headers",
    )


def by_function(records: DataFrame, reference: str, topic: str) -> DataFrame:
    """Let a function change the records: it receives and returns partition, offset, key, value, timestamp_ms, headers.

    :param reference: ``module:function``
    :raises ConfigError: when it cannot be imported, or returns something else
    """
    module, colon, name = reference.partition(":")
    if not (module and colon and name):
        raise UsageProblem(f"{reference!r} names no function", hint="write it as module:function")
    try:
        function: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as missing:
        raise ConfigError(f"cannot import {reference}: {missing}", hint="install it where kops runs") from missing
    given = records.selectExpr("partition", "offset", "new_key as key", "new_value as value", "timestamp_ms", "headers")
    found = function(given)
    lacking = sorted(set(_RECORD) - set(getattr(found, "columns", ())))
    if lacking:
        raise ConfigError(f"{reference} gives no {', '.join(lacking)}", hint=f"a DataFrame with {', '.join(_RECORD)}")
    return found.selectExpr(  # type: ignore[no-any-return]
        "partition",
        "offset",
        "cast(key as binary) as new_key",
        "cast(value as binary) as new_value",
        "key",
        "value",
        "cast(timestamp_ms as bigint) as timestamp_ms",
        f"cast(headers as {HEADERS_TYPE}) as headers",
        "timestamp_millis(timestamp_ms) as timestamp",
        f"'{topic}' as topic",
    )


def _bytes(frame: DataFrame, name: str, expression: str, form: Form) -> str:
    kind = _type_of(frame, f"--set {name}", expression)
    if kind in ("void", "binary"):
        return f"cast(({expression}) as binary)"
    if form.name == "json" and kind.startswith(_PARTS):
        return f"cast(to_json({expression}) as binary)"
    if form.name in ("bytes", "json"):
        if kind != "string":
            raise UsageProblem(
                f"--set {name}={expression} is {kind}, not a text", hint="such as: cast(value as string), to_json(...), or name the format"
            )
        return f"cast(({expression}) as binary)"
    wanted = sql_type(form)
    if kind not in WIDENS[wanted] or (wanted, kind) in _ROUNDS:
        raise UsageProblem(
            f"--set {name}={expression} is {kind}, which does not go into {form} by itself", hint=f"cast({expression} as {wanted})"
        )
    return encoding(f"cast(({expression}) as {wanted})", form)


def _milliseconds(frame: DataFrame, expression: str) -> str:
    kind = _type_of(frame, "--set timestamp", expression)
    if kind in WIDENS["bigint"]:
        return f"cast(({expression}) as bigint)"
    if kind == "timestamp":
        return f"unix_millis({expression})"
    raise UsageProblem(f"--set timestamp={expression} is {kind}, no time", hint="a timestamp, or milliseconds since the epoch")


def _type_of(frame: DataFrame, what: str, expression: str) -> str:
    try:
        return str(frame.selectExpr(f"({expression}) as it").schema["it"].dataType.simpleString())
    except Exception as error:
        raise _refused(what, expression, error) from error


def _refused(what: str, expression: str, error: Exception) -> UsageProblem:
    reason = str(error).strip().splitlines()[0].split(" SQLSTATE")[0]
    return UsageProblem(
        f"Spark cannot use {what} ({expression}): {reason}",
        hint="columns: key, value (bytes, or what --key and --value say), timestamp, timestamp_ms, topic, partition, offset, headers",
    )
