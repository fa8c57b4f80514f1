r"""Checks JSON against a JSON Schema with ``jsonschema``, without its features that are unsafe for untrusted schemas.

Nothing is fetched: references are resolved in the schema itself and in those that it was registered with. Patterns are those of ECMA 262.
Most are matched by Arrow's RE2, whose time is proportional to the text, whatever the pattern. RE2 has ECMA's ``\d``, ``\w``, ``\p{L}`` and
``$``, but neither lookaround nor backreferences: Python matches those, for at most a second. ``format`` and ``unevaluatedProperties`` are
not checked.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any

from kops.core.errors import OperationFailed
from kops.core.extras import SCHEMAS, needs
from kops.core.json_values import read_json

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

SECONDS = 1.0
"""Time limit for matching one text with a pattern that has lookaround or backreferences."""
LONGEST = 200
"""Maximum length of a message in characters: it contains the value."""
_MOST_DIGITS = 1_000
_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))")
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")


class JsonChecker:
    """A JSON Schema, parsed once.

    :param text: JSON
    :param referenced: name and text of the schemas that it refers to
    :raises OperationFailed: when it is not JSON
    """

    def __init__(self, text: str, referenced: Sequence[tuple[str, str]] = ()) -> None:
        try:
            self._root = _schema(read_json(text))
            self._others = {name: _schema(read_json(each)) for name, each in referenced}
        except (ValueError, RecursionError) as wrong:
            raise OperationFailed(f"no JSON Schema that can be read: {wrong}") from wrong
        if not isinstance(self._root, (dict, bool)):
            raise OperationFailed("no JSON Schema: it is neither an object nor true or false")

    @cached_property
    def validator(self) -> Validator:
        """The validator, by the draft that the schema names, otherwise by draft 7, as in registries.

        :raises MissingRequirement: without the extra ``schemas``
        :raises OperationFailed: when it is not a schema of that draft
        """
        needs(SCHEMAS, "checking JSON against its schema needs", "jsonschema", "pyarrow")
        from jsonschema import Draft7Validator, FormatChecker, SchemaError
        from jsonschema.validators import extend, validator_for
        from referencing import Registry, Resource
        from referencing.exceptions import NoSuchResource
        from referencing.jsonschema import DRAFT7

        def resource(uri: str) -> Resource[Any]:
            found = next((each for name, each in self._others.items() if uri == name or uri.endswith(f"/{name}")), None)
            if found is None:
                raise NoSuchResource(ref=uri)
            return Resource.from_contents(found, default_specification=DRAFT7)

        draft = validator_for(self._root, default=Draft7Validator)
        try:
            draft.check_schema(self._root, format_checker=FormatChecker(formats=()))  # Python would reject ECMA's patterns
        except SchemaError as wrong:
            raise OperationFailed(f"no JSON Schema: {_sentence(wrong)}") from wrong
        except RecursionError as wrong:
            raise OperationFailed("no JSON Schema that can be read: it is nested too deep") from wrong
        types = draft.TYPE_CHECKER
        if types.is_type(1.0, "integer"):  # since draft 6
            types = types.redefine("integer", lambda _, value: draft.TYPE_CHECKER.is_type(value, "integer") or _is_whole(value))
        checked: Any = extend(draft, _KEYWORDS, type_checker=types)
        found: Validator = checked(self._root, registry=Registry(retrieve=resource))
        return found

    def problems(self, value: Any) -> list[str]:
        """Return a sentence for each violation of the schema; empty when the value is valid.

        :raises OperationFailed: when the schema refers to one that it was not registered with
        """
        validator = self.validator
        from referencing.exceptions import Unresolvable

        try:
            return [_sentence(error) for error in validator.iter_errors(value)]
        except RecursionError:
            return ["the value is nested too deep"]
        except Unresolvable as unknown:
            raise OperationFailed(f"the JSON Schema refers to {unknown.ref}, which it was not registered with") from unknown


def _sentence(error: ValidationError | Any) -> str:
    """Return the JSONPath of an error and its message; for several alternatives, also what is wrong with the nearest one."""
    from jsonschema.exceptions import best_match

    nearest = best_match(error.context or ())
    message = error.message if len(error.message) <= LONGEST else f"{error.message[:LONGEST]}..."
    return f"{error.json_path}: {message}" + (f" ({_sentence(nearest)})" if nearest is not None else "")


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if isinstance(value, str):
        try:
            if not matches(pattern, value):
                yield ValidationError(f"{value!r} does not match {pattern!r}")
        except UncheckedPattern as unchecked:
            yield ValidationError(f"cannot be checked against the pattern {pattern!r}: {unchecked}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    for pattern, part in patterns.items() if isinstance(value, dict) else ():
        for name, each in value.items():
            try:
                if matches(pattern, name):
                    yield from validator.descend(each, part, path=name, schema_path=pattern)
            except UncheckedPattern as unchecked:
                yield ValidationError(f"{name!r} cannot be checked against the pattern {pattern!r}: {unchecked}")


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    for name, each in value.items() if isinstance(value, dict) else ():
        if name in schema.get("properties", {}) or any(_may_match(pattern, name) for pattern in schema.get("patternProperties", {})):
            continue
        if allowed is False:
            yield ValidationError(f"{name!r} is not in the schema, which allows no others")
        else:
            yield from validator.descend(each, allowed, path=name)


def _multiple_of(_validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
        return
    number, unit = _exact(value), _exact(step)
    if number and abs(number.adjusted() - unit.adjusted()) > _MOST_DIGITS:  # dividing them would take the memory of all digits between
        yield ValidationError(f"{value} cannot be checked to be a multiple of {step}: it has too many digits")
    elif not _is_multiple(number, unit):
        yield ValidationError(f"{value} is not a multiple of {step}")


def _exact(number: float | Decimal) -> Decimal:
    return number if isinstance(number, Decimal) else Decimal(repr(number))


def _is_multiple(value: Decimal, step: Decimal) -> bool:
    with localcontext(Context(prec=2 * _MOST_DIGITS + max(len(each.as_tuple().digits) for each in (value, step)))):
        return value % step == 0


def _schema(value: Any) -> Any:
    """Return a schema with integers for numbers such as 3.0, which stand where integers are expected."""
    if isinstance(value, dict):
        return {name: _schema(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_schema(each) for each in value]
    return int(value) if _is_whole(value) and value.adjusted() < _MOST_DIGITS else value


def _is_whole(value: Any) -> bool:
    """Whether a number with a fraction or an exponent is an integer, such as 1.0."""
    return isinstance(value, Decimal) and value == value.to_integral_value()


_KEYWORDS: Mapping[str, Any] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "unevaluatedProperties": lambda *_: (),  # jsonschema searches with Python's re
}


def _may_match(pattern: str, name: str) -> bool:
    try:
        return matches(pattern, name)
    except UncheckedPattern:  # which is reported by itself
        return True


class UncheckedPattern(ValueError):
    """A pattern that cannot be checked here, or not in time."""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches anywhere in a text.

    :raises MissingRequirement: without the extra ``schemas``
    :raises UncheckedPattern: when that cannot be determined
    """
    needs(SCHEMAS, "a pattern of JSON Schema needs", "pyarrow")
    import pyarrow
    import pyarrow.compute

    escaped = _UNICODE_ESCAPE.sub(lambda found: f"{found[1]}\\x{{{found[2] or found[3]}}}", pattern)
    try:
        column = pyarrow.array([text], pyarrow.string())
        return bool(pyarrow.compute.match_substring_regex(column, escaped)[0].as_py())
    except (pyarrow.ArrowInvalid, UnicodeEncodeError):
        return _by_python(_NAMED_GROUP.sub("(?P<", pattern), text)


def _by_python(pattern: str, text: str) -> bool:
    """Search with Python's ``re``, which may run without end, but handles signals meanwhile in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        raise UncheckedPattern("it has lookaround or backreferences, or is not valid")

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise UncheckedPattern(f"it takes more than {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        return re.search(pattern, text, re.ASCII) is not None
    except (re.error, OverflowError, RecursionError) as wrong:
        raise UncheckedPattern(f"kops cannot read it ({wrong})") from wrong
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
