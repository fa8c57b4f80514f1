"""Drafts of state files: fields that a person has yet to fill in, as marked by ``kops state init``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kops.core.errors import ConfigError
from kops.core.statefile.draft import OPEN


def refuse_open(path: str, body: Any) -> None:
    """Refuse a state file that has open fields.

    :param body: the parsed YAML
    :raises ConfigError: naming all of them
    """
    left = list(_open(body, ""))
    if left:
        hint = f"the comment above each {OPEN} says what to write there"
        raise ConfigError(f"{path}: still open: {', '.join(left)}", hint=hint, file=path, fields=left, field=left[0])


def _open(body: Any, place: str) -> Iterator[str]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            yield from _open(value, f"{place}.{name}".lstrip("."))
    elif body == OPEN:
        yield place
