"""Commands that kops suggests in sentences, between backticks: completed so that they reach the same cluster. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_NEED_A_CLUSTER = (
    *(
        "acls",
        "brokers",
        "client-metrics",
        "quotas",
        "share-groups",
        "topics",
        "transactions",
        "users",
        "records",
        "groups",
        "offsets",
        "connect",
        "schemas",
        "tokens",
        "changelog",
        "streams",
        "state",
        "replay",
        "cluster",
        "diagnose",
    ),
    *("undo", "apply", "journal finish"),
)
_SUGGESTED = re.compile(rf"`(kops (?:{'|'.join(_NEED_A_CLUSTER)})\b[^`]*)`")
_NAMED = re.compile(r" (?:-c|-B|--context|--bootstrap-server|--command-config|--help|-h)(?=[ =]|$)")
_OPTIONS = {
    "-c": "-c",
    "--context": "-c",
    "-B": "-B",
    "--bootstrap-server": "-B",
    "--command-config": "--command-config",
    "-X": "-X",
    "--property": "-X",
}


def completed(text: str, words: Sequence[str]) -> str:
    """Return a text whose suggested commands name the cluster, unless they do already.

    :param words: how the command line names it, such as ``-c prod``; empty if commands reach the cluster without
    """
    if not words or "`kops " not in text:
        return text
    return _SUGGESTED.sub(lambda found: found[0] if _NAMED.search(found[1]) else f"`{found[1]} {shlex.join(words)}`", text)


def words_of(arguments: Sequence[str]) -> list[str]:
    """Return the options of a command line that name the cluster: the last of each, and every -X."""
    found: dict[str, list[str]] = {}
    rest = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = _OPTIONS.get(name if word.startswith("--") else word[:2])
        if option is None:
            continue
        if word.startswith("--") and equals:
            given = value
        elif not word.startswith("--") and len(word) > len(option):
            given = word[len(option) :]
        elif rest:
            given = rest.pop(0)
        else:
            continue
        found[option] = [*(found.get(option, []) if option == "-X" else []), given]
    return [word for option, values in found.items() for value in values for word in (option, value)]
