"""``manifest.yaml`` of a folder: whose it is, and which names ``--prune`` may remove when no file declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kops.config.yaml_files import read_documents
from kops.core.errors import UsageProblem
from kops.core.statefile.fields import Fields, known_fields, nearest, owned_globs

FILE = "manifest.yaml"
FIELDS = ("version", "cluster", "owner", "owns")
VERSION = "1"


@dataclass(frozen=True)
class Manifest:
    """What a folder says of itself.

    :param cluster: id of the cluster that it was exported from; only shown
    :param owner: a label, such as the name of a team; empty: the folder owns nothing
    :param owns: names and globs by kind, such as ``topics``: what they match is removed by ``--prune`` unless a file declares it
    """

    cluster: str = ""
    owner: str = ""
    owns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_yaml(self) -> dict[str, Any]:
        owns = {"owns": {kind: list(globs) for kind, globs in self.owns.items()}} if self.owns else {}
        owner = {"owner": self.owner} if self.owner else {}
        return {"version": int(VERSION), "cluster": self.cluster, **owner, **owns}

    def needed_owner(self) -> str:
        """Return the label.

        :raises UsageProblem: when there is none, or it owns nothing
        """
        if not self.owner or not self.owns:
            raise UsageProblem(
                f"--prune needs to know which names belong to this folder, and its {FILE} does not say",
                hint="add a label and what it owns, such as owner: shop and owns: {topics: [shop-*]}",
            )
        return self.owner


def read_manifest(folder: Path, kinds: Mapping[str, str]) -> Manifest:
    """Read the manifest of a folder; an empty one if there is no file.

    :param kinds: those that may be owned, and what says only their kind in a name: see ``Kind.prefix``
    :raises ConfigError: naming the field
    """
    file = folder / FILE
    if not file.is_file():
        return Manifest()
    documents = read_documents(file, as_written=True)
    fields = known_fields(str(file), "", documents[0] if documents else {}, FIELDS, "a manifest")
    if len(documents) > 1:
        raise fields.wrong("", "has more than one document")
    if fields.text("version") not in (None, VERSION):
        raise fields.wrong("version", f"is {fields.text('version')}", f"this kops reads version {VERSION}")
    owns: dict[str, tuple[str, ...]] = {}
    if fields.body.get("owns") is not None:
        given = fields.inside("owns")
        for kind, globs in given.body.items():
            if kind not in kinds:
                raise given.wrong(kind, "is not a kind of thing here", f"{nearest(kind, kinds)}kinds: {', '.join(kinds)}")
            owns[kind] = tuple(owned_globs(Fields(given.file, given.path(kind), {"owns": globs}), kind.rstrip("s"), kinds[kind]))
    return Manifest(fields.text("cluster") or "", fields.text("owner") or "", owns)
