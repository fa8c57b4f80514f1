"""``kops cluster diff`` and ``apply``: a folder compared with the cluster, and one plan that brings the cluster in line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kops.core.errors import ConfigError, UsageProblem
from kops.core.plan import Plan
from kops.operations.folder.kinds import KINDS, NAMES, Kind
from kops.operations.folder.manifest import FILE, read_manifest
from kops.operations.protocol.composed import Part, Parts, compose
from kops.operations.services import Services


def plan_folder(services: Services, folder: Path, *, prune: bool = False) -> Plan[Parts]:
    """Plan to bring a cluster in line with a folder: what others need first, and what is removed last, in the opposite order.

    :param prune: also remove what the manifest owns and no file declares
    :raises ConfigError: naming file and field, also for a file that is of no kind
    :raises UsageProblem: for ``prune`` when the manifest owns nothing
    """
    manifest = read_manifest(folder, NAMES)
    owner = manifest.needed_owner() if prune else ""
    files = _files(folder)
    parts = [
        Part(kind.noun, plan)
        for kind in KINDS
        if kind.file in files
        for plan in kind.plan(_reaching(services, kind), str(folder / kind.file))
    ]
    for kind in reversed(KINDS if prune else ()):
        owned = manifest.owns.get(kind.name)
        if owned:
            parts += [Part(kind.noun, plan) for plan in kind.prune(_reaching(services, kind), owned, str(folder / kind.file))]
    plan = compose(parts, f"apply {folder}{f', which is owned by {owner}' if owner else ''}", services)
    return plan if prune else replace(plan, notes=(*plan.notes, "nothing is removed without --prune"))


def _reaching(services: Services, kind: Kind) -> Services:
    """Return the services.

    :raises UsageProblem: when the context does not reach what a file is about
    """
    reason = kind.lacks(services)
    if reason:
        raise UsageProblem(f"{kind.file} cannot be compared: {reason}", hint="add it with `kops context`, or move the file elsewhere")
    return services


def _files(folder: Path) -> set[str]:
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a directory", hint="`kops cluster export DIR` writes one")
    found = {file.name for file in folder.iterdir() if file.suffix in (".yaml", ".yml")}
    unknown = sorted(found - {FILE, *(kind.file for kind in KINDS)})
    if unknown:
        known = ", ".join(kind.file for kind in KINDS)
        raise ConfigError(f"{folder / unknown[0]} is of no kind that kops applies", hint=f"files: {FILE}, {known}")
    if not found:
        raise ConfigError(f"{folder} has no file to apply", hint="`kops cluster export DIR` writes some")
    return found
