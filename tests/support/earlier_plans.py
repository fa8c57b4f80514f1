"""Plan files and journal entries of an earlier run of kops, in a folder ``earlier`` beside the tests that use them."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any


def earlier_files(test: str) -> dict[str, Path]:
    """Return the kept files by name, such as ``run.plan``; ``test`` is the ``__file__`` of the tests."""
    return {path.stem: path for path in sorted(Path(test).with_name("earlier").glob("*.json"))}


def read_earlier(test: str) -> dict[str, Any]:
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in earlier_files(test).items()}


def state_folder() -> Path:
    return Path(os.environ["XDG_STATE_HOME"], "kops")


def journal_files() -> list[Path]:
    return sorted((state_folder() / "journal").glob("*.json"))


def journaled(entry: dict[str, Any]) -> str:
    """Put an entry into the journal, as a process of this machine that has died left it; return its id."""
    folder = state_folder() / "journal"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{entry['id']}.json").write_text(json.dumps(entry | {"host": socket.gethostname()}), encoding="utf-8")
    return str(entry["id"])


def approval(plan: dict[str, Any]) -> tuple[str, ...]:
    """Return the options that approve a plan without a question."""
    return ("--confirm", plan["confirm"]) if plan["severity"] == "severe" else ("--yes",)


def without_digest(plan: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plan.items() if name != "digest"}


def saved(path: Path, document: dict[str, Any]) -> Path:
    """Write a plan file; return its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
