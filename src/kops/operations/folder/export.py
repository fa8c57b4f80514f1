"""``kops cluster export``: what there is, as a file per kind."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kops.config.durable import write_whole
from kops.core.errors import BrokersTooOld, KopsError, SecurityDisabled, UsageProblem
from kops.operations.folder.kinds import KINDS, Kind
from kops.operations.folder.manifest import FILE, Manifest
from kops.operations.services import Services
from kops.output.yaml_text import write_yaml, write_yaml_documents


@dataclass(frozen=True)
class Exported:
    """One kind, as it was read.

    :param documents: None: it was not read, for the reason in ``notes``
    :param notes: what was left out, a sentence each
    :param failed: whether it should have been readable
    """

    kind: Kind
    documents: Sequence[dict[str, Any]] | None
    notes: tuple[str, ...] = ()
    failed: bool = False

    def row(self) -> dict[str, Any]:
        count = None if self.documents is None else len(self.documents)
        return {"kind": self.kind.name, "file": self.kind.file if self.documents else None, "documents": count, "notes": list(self.notes)}


def export(services: Services, folder: Path, *, replace: bool = False) -> list[Exported]:
    """Write a file for each kind of which there is something, and the manifest if there is none.

    :param replace: replace files that are there; without it none may be
    :raises UsageProblem: before anything is read or written, when there is a file
    """
    there = [kind.file for kind in KINDS if (folder / kind.file).exists()]
    if there and not replace:
        raise UsageProblem(f"{folder} has {', '.join(there)} already", hint="name another folder, or --replace the files")
    found = [_read(services, kind) for kind in KINDS]  # everything, before anything is written
    for one in found:
        if one.documents:
            _write(folder / one.kind.file, one.documents)
        elif one.documents is not None:
            (folder / one.kind.file).unlink(missing_ok=True)
    if not (folder / FILE).exists():
        text = io.StringIO()
        write_yaml(Manifest(services.kafka.cluster().cluster_id).as_yaml(), text)
        write_whole(folder / FILE, text.getvalue())
    return found


def _read(services: Services, kind: Kind) -> Exported:
    reason = kind.lacks(services)
    if reason:
        return Exported(kind, None, (f"{kind.name} not exported: {reason}",))
    try:
        return Exported(kind, *kind.export(services))
    except (BrokersTooOld, SecurityDisabled) as none:  # such a cluster has none
        return Exported(kind, None, (f"{kind.name} not exported: {none.message}",))
    except KopsError as error:
        return Exported(kind, None, (f"{kind.name} not exported: {error.message}",), failed=True)


def _write(file: Path, documents: Sequence[dict[str, Any]]) -> None:
    text = io.StringIO()
    write_yaml_documents(documents, text)
    write_whole(file, text.getvalue())
