"""Bytes to values and back as Spark SQL, so that rows stay in the JVM.

Kafka's number serializers write big-endian two's complement and IEEE 754 bits: ``Double.doubleToLongBits``, which has one NaN, and
``Float.floatToRawIntBits``, which keeps each. Spark has neither function for bytes, so a number is converted through its hexadecimal
digits, and through ``java.lang.Double`` for the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.statefile import Form
from kops.spark.reading.json_columns import CORRUPT, from_json, let, not_held
from kops.spark.reading.registered import IS_WRONG, READ, has_known_id, needs_python

WIDTHS = {"long": 8, "int": 4, "short": 2, "double": 8, "float": 4}
_SQL_TYPES = {
    "long": "bigint",
    "int": "int",
    "short": "smallint",
    "double": "double",
    "float": "float",
    "string": "string",
    "uuid": "string",
    "bytes": "binary",
}
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"

WIDENS = {
    "bigint": ("tinyint", "smallint", "int", "bigint"),
    "int": ("tinyint", "smallint", "int"),
    "smallint": ("tinyint", "smallint"),
    "double": ("tinyint", "smallint", "int", "bigint", "float", "double"),
    "float": ("tinyint", "smallint", "int", "bigint", "float"),
    "string": ("string",),
    "binary": ("binary",),
}
"""Java's implicit conversions (JLS 5.1.2), by resulting type."""


@dataclass(frozen=True)
class Decoding:
    """How a column of bytes is decoded.

    :param value: SQL of the value; null if the bytes are null or wrong
    :param is_wrong: SQL that is true if the bytes are not in the format, with ``{value}`` for the column that holds the value; None if all
        bytes are valid
    :param not_held: as :func:`json_columns.not_held` returns it
    """

    value: str
    is_wrong: str | None
    not_held: tuple[str, str] | None = None

    def judged(self, name: str) -> str:
        """Return SQL of whether the bytes are not in the format, which fails where the column does not hold a field.

        :param name: of the column that holds the value, beside ``topic``, ``partition`` and ``offset``
        """
        wrong = f"coalesce({self.is_wrong or 'false'}, false)".replace("{value}", name)
        if self.not_held is None:
            return wrong
        suspicious, reason = self.not_held
        place = f"'the {name} of ', topic, ':', partition, ' at offset ', offset, ' has no place in a column: '"
        failing = let("why", reason, f"if(why is null, {wrong}, raise_error(concat({place}, why)) is null)")
        return f"if({suspicious} or {wrong}, {failing}, false)"  # so that of most texts nothing is read twice


def sql_type(form: Form) -> str:
    return _SQL_TYPES.get(form.name, "string")


def decoding(column: str, form: Form, *, lenient: bool = False) -> Decoding:
    """Return how to decode the bytes of a column.

    For formats that need Python, ``registered.with_read`` has added the columns used here.

    :param lenient: whether a text that is not UTF-8 is accepted: invalid bytes become U+FFFD, as in ``StringDeserializer``

    :raises ConfigError: when the schema contains a character that it cannot
    :raises ParseException: PySpark's, when it is not valid
    """
    name = form.name
    if form.is_only_read:
        return _registered(column, form)
    if name == "json":
        return _json(column, form.schema)
    if name == "bytes":
        return Decoding(column, None)
    if name == "string" and lenient:
        return Decoding(f"make_valid_utf8(cast({column} as string))", None)
    if name in ("string", "uuid"):
        text = f"cast({column} as string)"
        right = f"is_valid_utf8({text})" if name == "string" else f"{text} rlike '{_UUID}'"
        # UUID.toString returns lower case, whatever was read.
        return Decoding(f"lower({text})" if name == "uuid" else text, f"{column} is not null and not ({right})")
    return _number(column, name)


def _number(column: str, name: str) -> Decoding:
    width = WIDTHS[name]
    bits = f"cast(conv(hex({column}), 16, -10) as bigint)"
    number = {
        "long": bits,
        "int": f"cast({bits} as int)",
        "short": f"cast({bits} as smallint)",
        "double": f"cast(java_method('java.lang.Double', 'longBitsToDouble', {bits}) as double)",
        "float": f"cast(java_method('java.lang.Float', 'intBitsToFloat', cast({bits} as int)) as float)",
    }[name]
    return Decoding(f"if(length({column}) = {width}, {number}, null)", f"length({column}) != {width}")


def _registered(column: str, form: Form) -> Decoding:
    if needs_python(form):
        return Decoding(f"{column}{READ}", f"{column}{IS_WRONG}")
    inner, framed = _json(f"substring({column}, 6)", form.schema), has_known_id(column, form)
    wrong = f"{column} is not null and (not {framed} or ({inner.is_wrong}))"
    held = inner.not_held and (f"({framed} and {inner.not_held[0]})", f"if({framed}, {inner.not_held[1]}, null)")
    return Decoding(f"if({framed}, {inner.value}, null)", wrong, held)


def _json(column: str, schema: str | None) -> Decoding:
    text = f"cast({column} as string)"
    if schema is None:
        return Decoding(text, f"{column} is not null and (not is_valid_utf8({text}) or try_parse_json({text}) is null)")
    wrong = f"not is_valid_utf8({text}) or length(trim({text})) = 0 or {{value}}.{CORRUPT} is not null"
    return Decoding(from_json(text, schema), f"{column} is not null and ({wrong})", not_held(text, schema))


def bits_of(expression: str, form: Form) -> str:
    """Return the integer whose big-endian bytes are those of a floating-point number."""
    if form.name == "double":
        return f"if(({expression}) is null, null, cast(java_method('java.lang.Double', 'doubleToLongBits', {expression}) as bigint))"
    return f"if(({expression}) is null, null, cast(java_method('java.lang.Float', 'floatToRawIntBits', {expression}) as int))"


def encoding(expression: str, form: Form) -> str:
    """Return the bytes of a value that has the Spark type of its format."""
    if form.name in ("double", "float"):
        return f"cast({bits_of(expression, form)} as binary)"
    if form.name == "uuid":
        return f"cast(lower({expression}) as binary)"
    return f"cast({expression} as binary)"


def written_again(value: str, raw: str, form: Form) -> str:
    """Return the bytes that Kafka Streams writes for a key or value that it read, which are not always the same.

    :param value: SQL of the decoded value, and ``raw`` of its bytes
    """
    if form.name in ("double", "string", "uuid"):
        return encoding(value, form)
    return f"if({value} is null, null, {raw})"
