"""Quotas as a file of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.cluster.models import Quota
from kops.core.plan import Plan
from kops.core.quotas import UNITS, document, entity_text, number, parse_documents
from kops.core.selection import names_owned
from kops.operations.protocol.entries import Entries, Entry
from kops.operations.quotas import CHANGE_QUOTAS, entries, notes
from kops.operations.services import Services


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return every quota, a document an entity; without keys that kops does not know."""
    found = sorted(services.kafka.details.client_quotas(), key=lambda one: entity_text(one.entity))
    known = [Quota(one.entity, {key: one.values[key] for key in sorted(one.values) if key in UNITS}) for one in found]
    left = [
        f"quota {key} of {entity_text(one.entity)} left out: this kops does not know it"
        for one in found
        for key in set(one.values) - UNITS.keys()
    ]
    return [document(one) for one in known if one.values], tuple(left)


def plan(services: Services, file: str) -> Sequence[Plan[Entries]]:
    """Plan to set the quotas of a file."""
    declared = _read(file)
    wanted = {
        target: entry
        for one in declared
        for target, entry in entries(one.entity, {key: number(value) for key, value in one.values.items()}).items()
    }
    return [_plan(services, wanted, declared)]


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Entries]]:
    """Plan to remove quotas of entities that globs match, such as ``user shop-*``, unless the file declares them."""
    declared = {(entity_text(one.entity), key) for one in _read(file) for key in one.values}
    found = {entity_text(one.entity): one for one in services.kafka.details.client_quotas()}
    owned = [found[name] for name in sorted(names_owned(owns, found))]
    doomed = {
        target: entry
        for one in owned
        for target, entry in entries(
            one.entity, {key: None for key in sorted(one.values) if (entity_text(one.entity), key) not in declared}
        ).items()
    }
    return [_plan(services, doomed, owned)] if doomed else []


def _plan(services: Services, wanted: dict[str, Entry], of: Iterable[Quota]) -> Plan[Entries]:
    made = CHANGE_QUOTAS.plan(services, wanted)
    return replace(made, notes=tuple(dict.fromkeys(note for one in of for note in notes(one.entity)))) if made.has_changes else made


def _read(file: str) -> list[Quota]:
    return parse_documents(placed_documents(Path(file), needed="quota", missing_ok=True))
