"""YAML as kops writes it: with all letters unescaped, but nothing that controls a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TextIO

from kops.core.json_values import RepeatedNames, WrittenNumber, write_json
from kops.core.visible import visible_lines


def write_yaml(body: Any, stream: TextIO) -> None:
    """Write YAML, with keys in their given order."""
    _write([body], stream, several=False)


def write_yaml_documents(bodies: Sequence[Any], stream: TextIO) -> None:
    _write(bodies, stream, several=True)


def _write(bodies: Sequence[Any], stream: TextIO, *, several: bool) -> None:
    import yaml

    form: dict[str, Any] = {"Dumper": _dumper(), "sort_keys": False, "explicit_start": several}
    text: str = yaml.dump_all(bodies, allow_unicode=True, **form)
    if visible_lines(text) != text:  # YAML considers some control characters printable; without Unicode it escapes all of them
        text = yaml.dump_all(bodies, allow_unicode=False, **form)
    stream.write(text)


@cache
def _dumper() -> Any:
    """Return a dumper of what JSON can hold. In YAML no mapping may repeat a name: a record's object that does is written as its JSON."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # ten times faster, if libyaml is installed
        pass

    Dumper.add_representer(WrittenNumber, lambda dumper, number: dumper.represent_scalar("tag:yaml.org,2002:float", str(number)))
    Dumper.add_representer(RepeatedNames, lambda dumper, held: dumper.represent_str(write_json(held)))
    return Dumper
