"""Reads a mapping of a YAML file field by field; every error names the file, the path, and the nearest name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from kops.core.errors import ConfigError, UsageProblem


def nearest(name: str, known: Collection[str]) -> str:
    """Return ``did you mean X? `` if one of the known names is similar, otherwise an empty text."""
    near = get_close_matches(str(name).lower(), list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""


class Fields:
    """A mapping with a place in a file.

    :param place: its path, such as ``stores.totals.from``; empty at the top
    :param plugin_formats: lists the formats that plugins provide; called only if kops has no format of that name
    """

    def __init__(
        self,
        file: str,
        place: str,
        body: Any,
        known: Collection[str] | None = None,
        *,
        plugin_formats: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.file, self.place, self.plugin_formats = file, place, plugin_formats
        if not isinstance(body, Mapping):
            raise self.wrong("", f"must be a mapping, not {_kind(body)}", f"fields: {', '.join(known)}" if known else None)
        self.body: Mapping[str, Any] = body
        for name in body:
            if not isinstance(name, str):
                raise self.wrong(str(name), "is not a name", "quote it")
            if known is not None and name not in known:
                raise self.wrong(name, "is not a field of a state file here", f"{nearest(name, known)}fields: {', '.join(known)}")

    def path(self, name: str) -> str:
        return ".".join(part for part in (self.place, name) if part)

    def wrong(self, name: str, what: str, hint: str | None = None) -> ConfigError:
        return ConfigError(f"{self.file}: {self.path(name) or 'the file'} {what}", hint=hint, file=self.file, field=self.path(name))

    def refuse_second(self, name: str, value: str, declared: Container[str]) -> None:
        """Refuse a document of what another one declares.

        :param name: the field that names it; empty: several do
        :param value: as in ``declared``
        :raises ConfigError: naming it
        """
        if value in declared:
            raise self.wrong(name, f"{value} is declared twice" if name else f"declares {value} twice", "put all of it into one document")

    def text(self, name: str) -> str | None:
        value = self.body.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not str(value).strip():
            raise self.wrong(name, f"must be a string, not {_kind(value)}")
        return str(value).strip()

    def exact(self, name: str, hint: str | None = None) -> str:
        """Return a needed text with the spaces that it begins or ends with.

        :raises ConfigError: when it is missing, empty, or no text
        """
        value = self.body.get(name)
        if value is None or value == "":
            raise self.wrong(name, "is missing" if value is None else "is empty", hint)
        if not isinstance(value, str):
            raise self.wrong(name, f"must be a string, not {_kind(value)}", hint)
        return value

    def sequence(self, name: str, hint: str | None = None) -> list[Any]:
        """Return a list; empty if there is none.

        :raises ConfigError: when it is something else
        """
        value = self.body.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(name, f"must be a list, not {_kind(value)}", hint)
        return value

    def needed(self, name: str, hint: str | None = None) -> str:
        value = self.text(name)
        if value is None:
            raise self.wrong(name, "is missing", hint)
        return value

    def one_of(self, name: str, known: Collection[str], default: str) -> str:
        value = self.text(name)
        if value is None:
            return default
        if value not in known:
            raise self.wrong(name, f"is {value!r}", f"{nearest(value, known)}one of: {', '.join(known)}")
        return value

    def flag(self, name: str, hint: str, *, default: bool = False) -> bool:
        value = self.body.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, f"is {value!r}", hint)
        return value

    def inside(self, name: str, known: Collection[str] | None = None) -> Fields:
        if self.body.get(name) is None:
            raise self.wrong(name, "is missing", f"fields: {', '.join(known)}" if known else None)
        return Fields(self.file, self.path(name), self.body[name], known, plugin_formats=self.plugin_formats)


def known_fields(file: str, place: str, body: Any, known: Collection[str], what: str) -> Fields:
    """Return a mapping that has no other fields.

    :param what: it is, for messages: ``a topic``
    :raises ConfigError: for another field
    """
    fields = Fields(file, place, body)
    for name in fields.body:
        if name not in known:
            raise fields.wrong(name, f"is not a field of {what}", f"{nearest(name, known)}fields: {', '.join(known)}")
    return fields


@contextmanager
def placed(fields: Fields, name: str) -> Iterator[None]:
    """Say of a value that turns out to be wrong where it stands.

    :raises ConfigError: for every ``UsageProblem`` in the block
    """
    try:
        yield
    except ConfigError:
        raise
    except UsageProblem as problem:
        raise fields.wrong(name, f"cannot be: {problem.message}", problem.hint) from problem


_KINDS = {
    type(None): "nothing",
    bool: "true or false",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    dict: "a mapping",
}


def _kind(value: Any) -> str:
    if value == "":
        return "an empty text"
    return _KINDS.get(type(value), type(value).__name__)


def config_text(fields: Fields, name: str) -> str:
    """Return a setting of a topic or connector: the text as written, or the texts of a list joined by commas.

    :raises ConfigError: if it is neither; an empty text is written as such
    """
    value = fields.body[name]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if not isinstance(value, str):
        hint = "a string, a number, true or false, or a list of them"
        raise fields.wrong(name, "has no value" if value is None else f"is {_kind(value)}", f'{hint}; "" is an empty text')
    return value


def owned_globs(fields: Fields, what: str, prefix: str = "") -> list[str]:
    """Return the names and globs of a document's ``owns``.

    :param what: kind of the named things, for messages: ``topic``, ``connector``
    :param prefix: regular expression of the parts of a name that say only what kind of name it is
    :raises ConfigError: if it is not valid, or would match every name
    """
    given = fields.body["owns"]
    globs = [given] if isinstance(given, str) else given
    if not isinstance(globs, list) or not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise fields.wrong("owns", "must be a name, a glob, or a list of them", "owns: [shop-*]")
    if any(not re.sub(prefix, "", glob).strip("*?") for glob in globs):
        raise fields.wrong("owns", f"would own every {what} there is", "begin it with the names' common part, such as shop-*")
    return globs
