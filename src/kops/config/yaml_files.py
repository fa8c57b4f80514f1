"""YAML that people write: state files, declarations, positions. One reader for all, by the core schema of YAML 1.2 with texts as written.

Plain scalars are null, true or false as in YAML 1.2 (``yes``, ``on`` and ``12:30`` are texts); everything else, numbers too, is the text as
written: ``0100`` stays ``0100``, and what needs a number reads it from the text. Beyond YAML 1.2 there is ``<<``, which merges mappings.
A key given twice is refused, since one value would hide the other; so is a node that contains itself, or aliases that multiply into more
than ``MOST_NODES`` nodes.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from kops.config.files import read_text
from kops.core.errors import ConfigError

LARGEST = 1 << 24
"""Bytes of the largest YAML file: PyYAML needs a minute for them."""
MOST_NODES = 2_000_000
_SEPARATOR = re.compile("[\\x85\\u2028\\u2029]")
"""Line ends of YAML 1.1, but not of 1.2: PyYAML would end a value there."""

_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
    "merge": (r"<<", "<"),
}
"""Section 10.3.2 of YAML 1.2.2, and the merge key of YAML 1.1; what a plain scalar begins with to be one."""


def read_documents(file: Path, *, what: str = "", hint: str | None = None, wrong: str | None = None, as_written: bool = False) -> list[Any]:
    """Return the documents of a YAML file.

    :param what: what the file is, for messages: ``state file``
    :param hint: hint for a file that cannot be read
    :param wrong: hint for a file that is not valid YAML
    :param as_written: see :func:`parse_documents`
    :raises ConfigError: naming the file and the line
    """
    text = read_text(file, what=what, hint=hint, largest=LARGEST)
    return parse_documents(text, str(file), hint=wrong, as_written=as_written)


def placed_documents(file: Path, *, needed: str = "", missing_ok: bool = False) -> list[tuple[str, Any]]:
    """Return the documents of a YAML file, each with its location for error messages; scalars are the texts as written.

    :param needed: what the file has to declare, for the message if it has no document: ``topic``; empty: it may have none
    :param missing_ok: a file that does not exist has none
    :raises ConfigError: naming the file and the line
    """
    if missing_ok and not file.is_file():
        return []
    bodies = read_documents(file, hint="name YAML files or directories of them", as_written=True)
    found = [
        (f"{file}, document {number}" if len(bodies) > 1 else str(file), body)
        for number, body in enumerate(bodies, 1)
        if body is not None  # a separator at the end leaves an empty document
    ]
    if needed and not found:
        raise ConfigError(f"{file}: no {needed} is declared", file=str(file))
    return found


def parse_documents(text: str, place: str, *, hint: str | None = None, as_written: bool = False) -> list[Any]:
    """Return the documents of a YAML text.

    :param place: where the text is from, for messages
    :param as_written: true and false are texts, too
    :raises ConfigError: naming the place and the line
    """
    import yaml

    if separator := _SEPARATOR.search(text):
        at = f"{place}, line {text.count(chr(10), 0, separator.start()) + 1}"
        raise ConfigError(f"{at}: {_has_to_be_escaped(ord(separator[0]))}", hint=hint, file=place)
    try:
        return list(yaml.load_all(text, Loader=_loader(as_written=as_written)))
    except yaml.YAMLError as error:
        raise ConfigError(f"{place}{_line(error, text)}: not YAML: {_problem(error)}", hint=hint, file=place) from error
    except RecursionError as error:
        raise ConfigError(f"{place}: not YAML that can be read: it is nested too deeply", hint=hint, file=place) from error


def _line(error: Any, text: str) -> str:
    mark, position = getattr(error, "problem_mark", None), getattr(error, "position", None)
    if mark is not None:
        return f", line {mark.line + 1}"
    return f", line {text.count(chr(10), 0, position) + 1}" if isinstance(position, int) else ""


def _problem(error: Any) -> str:
    character = getattr(error, "character", None)
    if isinstance(character, int):
        return _has_to_be_escaped(character)
    if "duplicate anchor" in str(getattr(error, "context", "")):
        return "an anchor is given twice"
    return str(getattr(error, "problem", None) or error)


def _has_to_be_escaped(character: int) -> str:
    return f"the character U+{character:04X} has to be escaped, in double quotes"


@cache
def _loader(*, as_written: bool) -> Any:
    """Return a safe loader with the tags of the core schema only."""
    import yaml

    class Loader(yaml.SafeLoader):
        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self._nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            is_alias, before = isinstance(event, yaml.AliasEvent), self._nodes
            node: Any = super().compose_node(parent, index)
            if not is_alias:
                self._nodes += 1
                node.kops_size = self._nodes - before
            elif hasattr(node, "kops_size"):
                self._nodes += node.kops_size
            else:
                raise yaml.composer.ComposerError(None, None, f"{event.anchor} contains itself", event.start_mark)
            if self._nodes > MOST_NODES:
                raise yaml.composer.ComposerError(None, None, f"its aliases make more than {MOST_NODES} nodes", event.start_mark)
            return node

        def compose_mapping_node(self, anchor: Any) -> Any:
            node: Any = super().compose_mapping_node(anchor)
            _refuse_twice(node)
            return node

    constructors: dict[str | None, Any] = {
        f"{_TAG}{name}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{name}"] for name in ("str", "seq", "map")
    }
    constructors |= {f"{_TAG}{name}": _as_text for name in _CORE}
    constructors |= {f"{_TAG}null": _as_null, None: yaml.SafeLoader.yaml_constructors[None]}
    constructors |= {} if as_written else {f"{_TAG}bool": _as_flag}
    Loader.yaml_constructors = constructors
    Loader.yaml_implicit_resolvers = {"": [(f"{_TAG}null", re.compile(""))]}
    for name, (pattern, starts) in _CORE.items():
        Loader.add_implicit_resolver(f"{_TAG}{name}", re.compile(f"^(?:{pattern})$"), list(starts))
    return Loader


def _refuse_twice(mapping: Any) -> None:
    import yaml

    seen = set()
    for key, _ in mapping.value:
        if key.id == "scalar" and key.value in seen:  # no field has a name of another kind, so that is refused later
            raise yaml.composer.ComposerError(None, None, f"{key.value} is given twice", key.start_mark)
        seen.add(key.value if key.id == "scalar" else None)


def _as_text(loader: Any, node: Any) -> str:
    import yaml

    text, name = str(loader.construct_scalar(node)), node.tag.removeprefix(_TAG)
    if re.fullmatch(_CORE[name][0], text) is None:
        raise yaml.constructor.ConstructorError(None, None, f"{text!r} is not a valid {name}", node.start_mark)
    return text


def _as_flag(loader: Any, node: Any) -> bool:
    return _as_text(loader, node).lower() == "true"


def _as_null(loader: Any, node: Any) -> None:
    _as_text(loader, node)
