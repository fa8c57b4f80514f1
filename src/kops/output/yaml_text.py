"""YAML as kops writes it: with all letters unescaped, but nothing that controls a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from kops.core.visible import visible_lines


def write_yaml(body: Any, stream: TextIO) -> None:
    """Write YAML, with keys in their given order."""
    _write([body], stream, several=False)


def write_yaml_documents(bodies: Sequence[Any], stream: TextIO) -> None:
    _write(bodies, stream, several=True)


def _write(bodies: Sequence[Any], stream: TextIO, *, several: bool) -> None:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, if libyaml is installed
    form: dict[str, Any] = {"Dumper": dumper, "sort_keys": False, "explicit_start": several}
    text: str = yaml.dump_all(bodies, allow_unicode=True, **form)
    if visible_lines(text) != text:  # YAML considers some control characters printable; without Unicode it escapes all of them
        text = yaml.dump_all(bodies, allow_unicode=False, **form)
    stream.write(text)
