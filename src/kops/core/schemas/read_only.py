"""What a program may ask a schema registry with Confluent's API when it is only to read: which requests pass. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import unquote

_READS = ("GET", "HEAD")
_SUBJECT = re.compile(r"/subjects/(?P<subject>[^/?#;]+)(?P<registers>/versions)?/?")
_COMPATIBILITY = re.compile(r"/compatibility/subjects/[^/?#;]+/versions(/[^/?#;]+)?/?")


@dataclass(frozen=True)
class RequestVerdict:
    """What becomes of a request.

    :param passes: the registry gets it as it is
    :param look_up: in place of registering a schema, where it is looked up; None: the request does not register one
    :param subject: of that schema
    """

    passes: bool
    look_up: str | None = None
    subject: str = ""


def judge_request(method: str, target: str, bases: Collection[str] = ("",)) -> RequestVerdict:
    """Judge a request.

    :param target: path and query, as sent
    :param bases: what the paths of the API begin with, without a slash at their ends
    """
    if method in _READS:
        return RequestVerdict(passes=target.startswith("/"))
    path, mark, query = target.partition("?")
    if method != "POST":
        return RequestVerdict(passes=False)
    for base in bases:
        inside = path.removeprefix(base) if path.startswith(base) else ""
        if _COMPATIBILITY.fullmatch(inside) and _is_plain(inside):
            return RequestVerdict(passes=True)
        found = _SUBJECT.fullmatch(inside)
        if found is None or not _is_plain(inside):
            continue
        if not found["registers"]:
            return RequestVerdict(passes=True)
        return RequestVerdict(passes=False, look_up=f"{base}/subjects/{found['subject']}{mark}{query}", subject=unquote(found["subject"]))
    return RequestVerdict(passes=False)


def _is_plain(path: str) -> bool:
    """Whether every server reads a path alike: none of its names is a step upward, or has a slash or a parameter in it once decoded."""
    names = [unquote(name) for name in path.split("/")]
    return not any(name in (".", "..") or set(name) & set("/\\;?#%") or not name.isprintable() for name in names)
