"""What a check is: it looks at things of one kind, and judges what it saw of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.findings import Finding
from kops.operations.diagnose.incident import Incident, NotAsked

__all__ = ["CLUSTER", "CONNECTOR", "GROUP", "TOPIC", "Check", "Incident", "NotAsked"]

CLUSTER, TOPIC, GROUP, CONNECTOR = "cluster", "topic", "group", "connector"


@dataclass(frozen=True)
class Check:
    """One thing that ``kops diagnose`` looks at; a module of ``kops.operations.diagnose.checks`` has it as ``CHECK``.

    :param name: what it examines, for ``looked at`` and ``--checks``: ``committed offsets``
    :param subject: what kind of thing it looks at: CLUSTER, TOPIC, GROUP or CONNECTOR
    :param finds: the stable names of its findings
    :param needs: rights and versions that it takes, for ``--checks``
    :param look: returns what was seen of each subject, by name. Single subjects that could not be examined go to ``Incident.gaps``; it
        raises NotAsked, or any other KopsError where nothing could be examined
    :param find: judges all that was seen, without asking further
    """

    name: str
    subject: str
    finds: tuple[str, ...]
    needs: str
    look: Callable[[Incident], Mapping[str, Any]]
    find: Callable[[Mapping[str, Any], Incident], Iterable[Finding]]
