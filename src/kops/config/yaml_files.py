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


def parse_documents(text: str, place: str, *, hint: str | None = None, as_written: bool = False) -> list[Any]:
    """Return the documents of a YAML text.

    :param place: where the text is from, for messages
    :param as_written: true and false are texts, too
    :raises ConfigError: naming the place and the line
    """
    import yaml

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
        return f"the character U+{character:04X} has to be escaped, in double quotes"
    return str(getattr(error, "problem", None) or error)


@cache
def _loader(*, as_written: bool) -> Any:
    """Return a safe loader with the tags of the core schema only."""
    import yaml

    class Loader(yaml.SafeLoader):
        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self._nodes = 0
            self._sizes: dict[int, int] = {}

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            before = self._nodes
            node = super().compose_node(parent, index)
            if not isinstance(event, yaml.AliasEvent):
                self._nodes += 1
                self._sizes[id(node)] = self._nodes - before
            elif id(node) in self._sizes:
                self._nodes += self._sizes[id(node)]
            else:
                raise yaml.composer.ComposerError(None, None, f"{event.anchor} contains itself", event.start_mark)
            if self._nodes > MOST_NODES:
                raise yaml.composer.ComposerError(None, None, f"its aliases make more than {MOST_NODES} nodes", event.start_mark)
            return node

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            _refuse_twice(node)
            return node

    constructors: dict[str | None, Any] = {
        f"{_TAG}{name}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{name}"] for name in ("str", "seq", "map")
    }
    constructors |= {f"{_TAG}{name}": _as_text for name in _CORE} | {f"{_TAG}null": _as_null}
    constructors |= {None: yaml.SafeLoader.yaml_constructors[None]} | ({} if as_written else {f"{_TAG}bool": _as_flag})
    Loader.yaml_constructors = constructors
    Loader.yaml_implicit_resolvers = {"": [(f"{_TAG}null", re.compile(""))]}
    for name, (pattern, starts) in _CORE.items():
        Loader.add_implicit_resolver(f"{_TAG}{name}", re.compile(f"^(?:{pattern})$"), list(starts))
    return Loader


def _refuse_twice(mapping: Any) -> None:
    import yaml

    seen = set()
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode):  # no field has a name of another kind, so that is refused later
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(key.value)


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
