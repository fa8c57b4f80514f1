"""The keys of a command's JSON, which is a contract."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.command_line import Outcome

OPAQUE = ("arguments", "guard", "before", "after", "settings", "value", "details", "facts")
"""What is inside differs with the operation and the data."""


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Name the keys of a JSON value: ``members[].assignment[].topic``."""
    if isinstance(value, list):
        for each in value:
            yield from paths(each, f"{at}[]")
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from paths(None if key in OPAQUE else each, f"{at}.{key}" if at else key)
    elif at:
        yield at


def keys_of(out: str) -> set[str]:
    """Return the keys of one JSON value, or of one a line."""
    try:
        found = [json.loads(out)]
    except ValueError:
        found = [json.loads(line) for line in out.splitlines()]
    return {path.removeprefix("[].") for value in found for path in paths(value)}


PINNED: dict[str, list[str]] = yaml.safe_load((Path(__file__).parents[1] / "cli" / "json_keys.yaml").read_text(encoding="utf-8"))


def as_pinned(command: str, outcome: Outcome) -> Any:
    """Compare the keys of a command's JSON with those that are pinned, and return it."""
    found = sorted(keys_of(outcome.out))
    assert found == PINNED[command], f"too many: {set(found) - set(PINNED[command])}; too few: {set(PINNED[command]) - set(found)}"
    return outcome.json


_ADDRESSES = ("bootstrap_servers", "client_properties", "connect_url", "connect_urls[]", "registry_url")
_OF_PARTS = ("id", "log", "pid", "port", "state")
SANDBOX_KEYS = {
    *_ADDRESSES,
    *("cluster_id", "connect", "context", "directory", "kafka_version", "name", "security", "state"),
    *(f"{part}.{key}" for part in ("brokers[]", "workers[]", "registry") for key in _OF_PARTS),
}
"""Of ``kops sandbox up`` and ``kops sandbox status``, of one with Connect and a registry."""
