"""YAML as kops writes it: with every letter as it is, but nothing that acts on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from kops.core.visible import visible_lines


def write_yaml(body: Any, stream: TextIO) -> None:
    """Write YAML in the order of the keys."""
    _write([body], stream, several=False)


def write_yaml_documents(bodies: Sequence[Any], stream: TextIO) -> None:
    """Write a document for each."""
    _write(bodies, stream, several=True)


def _write(bodies: Sequence[Any], stream: TextIO, *, several: bool) -> None:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, where libyaml is there
    form: dict[str, Any] = {"Dumper": dumper, "sort_keys": False, "explicit_start": several}
    text: str = yaml.dump_all(bodies, allow_unicode=True, **form)
    if visible_lines(text) != text:  # YAML calls some of it printable; without Unicode it writes all of it as escapes
        text = yaml.dump_all(bodies, allow_unicode=False, **form)
    stream.write(text)
