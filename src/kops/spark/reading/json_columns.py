"""JSON in columns, as Spark SQL, and which numbers of a text its columns would not hold as they are written.

``from_json`` makes of a number whatever its column can hold: of 12345678901234567.89 the double 12345678901234568, of 1.239 in a
``decimal(10,2)`` 1.24, of 200 in a ``tinyint`` -56, of 1e400 in a text ``"Infinity"``. So where a text has numbers of that many digits, or
was refused, it is read once more with its numbers as texts, and each is compared with what its column makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kops.core.errors import ConfigError

CORRUPT = "_kops_corrupt"
_OPTIONS = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"
_NUMBER = "-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?"
_DECIMAL_TEXT = "[-+]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][-+]?[0-9]+)?"
_TOKENS = r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|(-?[0-9][-+.0-9eE]*+)'
"""Texts, which are left alone, and numbers. Possessive, so that Java needs no stack for them."""
_BEGINS = r'(?:^|[:,\[\s])["\x27]?\s*[-+]?'
"""What stands before a number, or before a text that is one: so that digits inside texts, as those of UUIDs, are not taken for numbers."""
_HUGE = "[0-9.]+[eE][-+]?[0-9]{3}"
_MANTISSA = "(?=[0-9.]{17})[0-9]*[.]|[0-9.]{16}[eE]"
"""What only a double of more than 15 digits can have been made of."""
_MAY_DIFFER = {
    "double": f"{_BEGINS}(?:[0-9.]{{17}}|9[0-9]{{15}}|[0-9.]{{16}}[eE]|{_HUGE})",  # below 9 * 10^15 a double holds every integer
    "float": f"{_BEGINS}(?:[0-9.]{{7}}|[0-9.]+[eE])",
    "tinyint": f"{_BEGINS}[0-9]{{3}}",
    "timestamp": f"[.][0-9]{{7}}|{_BEGINS}(?:[0-9]{{13}}|[0-9.]+[eE])",
    "timestamp_ntz": "[.][0-9]{7}",
    "date": "[0-9][T ]",
    "string": f"{_BEGINS}(?:{_MANTISSA}|{_HUGE})",
    "variant": f"{_BEGINS}(?:{_MANTISSA}|[0-9]{{39}}|[0-9.]+[eE])",
}
"""By the type of a column: what a text contains in which a value may differ; what other types cannot hold, ``from_json`` refuses."""
_FIRST_LOOK = ("double", "string"), ("[0-9.]{16}", "[0-9][eE]")
"""What every text that the patterns of these types find has too, and most texts have not. Two patterns take Java half the time of one."""
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("timestamp", "timestamp_ntz", "date")
_JSON = ("string", "variant")
_MOST_SHOWN = 60
_ADVICE = "declare a type that holds it, such as decimal(38,n) for n digits after the point, or leave it out of the schema"


def from_json(text: str, schema: str) -> str:
    """Return SQL of a JSON text's fields, and ``CORRUPT``.

    :param schema: DDL
    :raises ConfigError: when the schema has a character that it cannot have here
    """
    for mark in ("'", "\\", "`"):
        if mark in schema:
            raise ConfigError(f"the schema {schema!r} contains {mark}, which a DDL schema here cannot", hint="item string, price double")
    return f"if(trim({text}) = 'null', null, from_json({text}, '{schema}, {CORRUPT} string', {_OPTIONS}))"


def not_held(text: str, schema: str) -> tuple[str, str] | None:
    """Return SQL of whether a JSON text may have a field that its column does not hold, and of the first such field and its value.

    A double holds a number if it is the same to as many digits as are written: 0.1 and 0.10000000000000001, not 9007199254740993.
    The second is null if there is none, and slow: it is for the texts that the first finds, and for those that ``from_json`` refuses.

    :return: None if the columns hold everything that JSON has
    """
    from pyspark.sql.types import DataType

    kind = DataType.fromDDL(schema)
    if (fields := _texts(kind)) is None:
        return None
    read = f"from_json({_marked(text)}, '{fields.removesuffix('>')}, `{CORRUPT}`: string>', {_OPTIONS})"
    kinds = _kinds(kind)
    lost = let("of", f"filter({_parts_of(kind, 'texts')}, part -> part.n is not null and not {_fits(kinds)})", _said("get(of, 0)"))
    return f"coalesce({_suspect(text, kinds)}, false)", let("texts", read, f"if(texts.{CORRUPT} is null, {lost}, null)")


def _texts(kind: Any) -> str | None:
    """Return the DDL of the fields that may differ, as texts; None if there are none."""
    name = kind.typeName()
    if name == "struct":
        inner = {field.name: _texts(field.dataType) for field in kind.fields}
        fields = [f"`{field}`: {each}" for field, each in inner.items() if each is not None]
        return f"struct<{', '.join(fields)}>" if fields else None
    if name in ("array", "map"):
        part = _texts(kind.elementType if name == "array" else kind.valueType)
        return part and (f"array<{part}>" if name == "array" else f"map<string, {part}>")
    return "string" if name == "decimal" or kind.simpleString() in (*_MAY_DIFFER, *_INTEGERS) else None


def _kinds(kind: Any) -> list[str]:
    """Return the types of the fields that may differ, each once."""
    name = kind.typeName()
    if name == "struct":
        return list(dict.fromkeys(each for field in kind.fields for each in _kinds(field.dataType)))
    if name in ("array", "map"):
        return _kinds(kind.elementType if name == "array" else kind.valueType)
    return [] if _texts(kind) is None else [str(kind.simpleString())]


def _suspect(text: str, kinds: Sequence[str]) -> str:
    """Return SQL of whether a text may have a number that a field of one of these types does not hold."""
    types, first = _FIRST_LOOK
    looked = _has(text, [_suspicious(kind) for kind in kinds if kind in types])
    return f"({_has(text, first)} and {looked} or {_has(text, [_suspicious(kind) for kind in kinds if kind not in types])})"


def _has(text: str, patterns: Sequence[str]) -> str:
    found = [f"{text} rlike r'{pattern}'" for pattern in dict.fromkeys(patterns) if pattern]
    return f"({' or '.join(found) or 'false'})"


def _suspicious(kind: str) -> str:
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        return f"{_BEGINS}(?:[0-9,]*[.][0-9]{{{scale + 1}}}|[0-9.,]+[eE])"
    return _MAY_DIFFER.get(kind, "")


def _marked(text: str) -> str:
    """Return SQL of a JSON text in which numbers are texts that begin with U+0001, which no text contains as it is written."""
    marked = f"regexp_replace({text}, r'{_TOKENS}', '$1\\u0001$2\\u0002')"
    return f"replace(replace(replace({marked}, '\\u0001\\u0002'), '\\u0001', r'\"\\u0001'), '\\u0002', '\"')"


def _parts_of(kind: Any, texts: str, path: str = "") -> str:
    """Return SQL of an array of those parts of a value that may differ: the path of each, its type, and its number as it is written."""
    name = kind.typeName()
    if name == "struct":
        inside = [
            _parts_of(field.dataType, f"{texts}.`{field.name}`", f"{path}.{field.name}" if path else field.name)
            for field in kind.fields
            if _texts(field.dataType) is not None
        ]
        return f"concat({', '.join(inside)})"
    if name in ("array", "map"):
        values, part, step = (texts, kind.elementType, "[]") if name == "array" else (f"map_values({texts})", kind.valueType, "{}")
        each = f"each{path.count('[]') + path.count('{}')}"
        return f"flatten(transform(coalesce({values}, array()), {each} -> {_parts_of(part, each, path + step)}))"
    found = str(kind.simpleString())
    if found in _JSON:  # of a text that is a number itself, of an object the JSON
        numbered = f"regexp_extract_all({texts}, r'(?:^\\x01|\"\\\\u0001)({_NUMBER})', 1)"
        numbers = f"if(left({texts}, 1) in ('\\u0001', '{{', '['), {numbered}, array())"
        return f"transform({numbers}, n -> {_part(path, found, 'n')})"
    if found in _TIMES:
        return f"array({_part(path, found, texts)})"
    number = _extracted(texts, rf"^\x01({_NUMBER})$")
    if name == "decimal":  # texts go into it too
        number = _extracted(f"replace({texts}, ',')", rf"^\x01?({_DECIMAL_TEXT})$")
    return f"array({_part(path, found, number)})"


def _part(path: str, kind: str, number: str) -> str:
    return f"named_struct('path', '{path}', 'kind', '{kind}', 'n', {number})"


def _extracted(text: str, pattern: str) -> str:
    return f"nullif(regexp_extract({text}, r'{pattern}', 1), '')"


def _fits(kinds: Sequence[str]) -> str:
    """Return SQL of whether ``part.n`` goes into a column of ``part.kind`` without change."""
    judged = [f"when '{kind}' then {_fits_one(kind)}" for kind in kinds]
    return f"case part.kind {' '.join(judged)} end"


def _fits_one(kind: str) -> str:
    n = "part.n"
    if kind in _TIMES:
        lost = "[0-9][T ]" if kind == "date" else "[.][0-9]{6}[0-9]*[1-9]"
        return f"if(left({n}, 1) = '\\u0001', {n} rlike '^.-?[0-9]{{1,12}}$', not {n} rlike '{lost}')"
    if kind in _INTEGERS:
        return f"({n} rlike '^-?[0-9]+$' and try_cast({n} as {kind}) is not null)"
    if kind.startswith("decimal"):
        return f"{_digits(n)} = coalesce({_digits(f'cast(try_cast({n} as {kind}) as string)')}, '-')"
    if kind in _JSON:  # what is neither an integer nor, in a variant, a decimal is read as a double
        whole = "^-?[0-9]+$" if kind == "string" else "^-?(?=[0-9.]{1,39}$)(?![0-9]{39})[0-9.]+$"
        return f"({n} rlike r'{whole}' or {_fits_one('double')})"
    return f"({n} rlike '^-?[0-9.]{{1,{15 if kind == 'double' else 6}}}$' or {let('real', f'cast({n} as {kind})', _is_written_so(n))})"


def _is_written_so(n: str) -> str:
    """Return SQL of whether ``real`` is a number to as many digits as it is written with."""
    exact = _digits("if(abs(real) < double('Infinity'), java_method('scala.math.BigDecimal', 'exact', cast(real as double)), null)")
    scaled = "cast(concat(left(exact, length(n)), '.', substr(exact, length(n) + 1)) as decimal(38,10))"
    close = f"abs({scaled} - cast(n as decimal(28,0))) <= {_units('real')}"
    held = let("exact", exact, f"coalesce({close} or exact = n, false)")
    return let("n", _digits(n), f"n = {_digits('cast(real as string)')} or {held}")


def _units(real: str) -> str:
    """Return SQL of how far from a floating-point number its shortest text may be, in units of the last digit.

    Half a unit; of powers of two up to a whole one, as below them the numbers are closer: Java, Python and JavaScript write 2^-44 as
    5.684341886080802E-14. Those from 1 to 2^64 are all written to half a unit.
    """
    bits = f"cast(java_method('java.lang.Double', 'doubleToLongBits', cast({real} as double)) as bigint)"
    return f"if({bits} & {(1 << 52) - 1} = 0 and not abs({real}) between 1 and {1 << 64}D, 1.0, 0.5)"


def _digits(number: str) -> str:
    """Return SQL of the digits of a number, from the first to the last that is not 0: equal for equal numbers of about the same size."""
    return f"trim(both '0' from translate(regexp_replace({number}, '[eE].*', ''), '-+.', ''))"


def _said(part: str) -> str:
    shown = f"replace(if(length({part}.n) > {_MOST_SHOWN}, concat(left({part}.n, {_MOST_SHOWN - 3}), '...'), {part}.n), '\\u0001')"
    return f"concat({part}.path, ': ', {shown}, ' does not fit into ', {part}.kind, '; {_ADVICE}')"


def let(name: str, value: str, body: str) -> str:
    """Return SQL of ``body``, in which ``name`` is a value that is computed once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"
