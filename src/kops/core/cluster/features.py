"""What the levels of Kafka's features bring, and which changes can be undone (``Feature``, ``MetadataVersion`` of Kafka 4.4). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kops.core.cluster.models import METADATA_VERSIONS, NEWEST_KNOWN, Feature
from kops.core.errors import Refused, UsageProblem
from kops.core.plan import Arguments, Json

METADATA, KRAFT = "metadata.version", "kraft.version"
_METADATA_CHANGED = (8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
"""Levels of ``metadata.version`` that write records which earlier ones cannot read (``MetadataVersion.didMetadataChange``)."""
CONTROLLERS_REGISTER = 15
"""From this level on controllers are registered, so that the active one checks what the others support."""


@dataclass(frozen=True)
class Level:
    """A level of a feature other than ``metadata.version``.

    :param metadata: the level of ``metadata.version`` from which releases set it by default
    """

    metadata: int
    brings: str


LEVELS: Mapping[str, Mapping[int, Level]] = {
    KRAFT: {1: Level(21, "controllers can be added and removed while the cluster runs (KIP-853)")},
    "transaction.version": {
        1: Level(24, "flexible records of transaction states (KIP-890)"),
        2: Level(24, "a new producer epoch for each transaction, which prevents hanging transactions (KIP-890)"),
    },
    "group.version": {1: Level(22, "consumer groups of the new protocol (KIP-848)")},
    "eligible.leader.replicas.version": {1: Level(26, "replicas out of sync that can be elected without loss (KIP-966)")},
    "share.version": {
        1: Level(28, "share groups (KIP-932)"),
        2: Level(31, "share groups with dead letter topics (KIP-1191)"),
    },
    "streams.version": {1: Level(29, "streams groups (KIP-1071)")},
}


@dataclass(frozen=True)
class Levels(Arguments):
    """Levels to set.

    :param after: 0 disables a feature
    :param unsafe: allow the controllers to lose metadata
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    unsafe: bool = False

    def as_json(self) -> Json:
        return {"before": dict(self.before), "after": dict(self.after), "unsafe": self.unsafe}

    @classmethod
    def of_json(cls, body: Json) -> Levels:
        return cls({**body["before"]}, {**body["after"]}, bool(body["unsafe"]))


def level_text(name: str, level: int) -> str:
    """Format a level for people: ``33 (4.4-IV2)``."""
    known = name == METADATA and 0 < level <= len(METADATA_VERSIONS)
    return f"{level} ({METADATA_VERSIONS[level - 1]})" if known else str(level)


def brings(name: str, before: int, after: int) -> str:
    """Return what changes between two levels."""
    low, high = sorted((before, after))
    known = LEVELS.get(name, {})
    texts = [known[level].brings for level in range(low + 1, high + 1) if level in known]
    if name == METADATA:
        texts = (
            [f"the metadata format of Kafka {METADATA_VERSIONS[after - 1].partition('-')[0]}"] if after <= len(METADATA_VERSIONS) else []
        )
    if not texts:
        return "kops does not know these levels"
    return f"{'without ' if after < before and name != METADATA else ''}{'; '.join(texts)}"


def why_final(name: str, before: int, after: int) -> str:
    """Return why an upgrade cannot be undone; empty if it can, or is a downgrade."""
    if after <= before:
        return ""
    if name == KRAFT:
        return "controllers never go back to a fixed quorum"
    if name != METADATA:
        return ""
    if after > len(METADATA_VERSIONS):
        return "this kops does not know this level of metadata.version"
    changed = [level for level in _METADATA_CHANGED if before < level <= after]
    return f"from {METADATA_VERSIONS[changed[0] - 1]} on, earlier releases cannot read the metadata" if changed else ""


def parse_levels(texts: Sequence[str]) -> dict[str, int]:
    """Parse ``FEATURE=LEVEL``; the level of ``metadata.version`` may be a release, such as ``4.3`` or ``4.3-IV0``.

    :raises UsageProblem: for anything else
    """
    found: dict[str, int] = {}
    for text in texts:
        name, _, level = text.partition("=")
        if name in found:
            raise UsageProblem(f"{name} is given twice", hint="give each feature once")
        if name == METADATA and not level.isdigit():
            found[name] = metadata_level(level)
        elif level.isascii() and level.isdigit() and len(level) < 6:  # noqa: PLR2004 - digits of an int16
            found[name] = int(level)
        else:
            raise UsageProblem(f"{text!r} is not FEATURE=LEVEL", hint="such as group.version=1; `kops cluster features list` shows them")
    return found


def metadata_level(release: str) -> int:
    """Return the level of ``metadata.version`` of a release.

    :raises UsageProblem: for one that this kops does not know
    """
    levels = [at for at, name in enumerate(METADATA_VERSIONS, 1) if name == release or name.partition("-")[0] == release]
    if not levels:
        raise UsageProblem(f"kops knows no release {release!r}", hint=f"such as {NEWEST_KNOWN}; or give the level: {METADATA}=N")
    return max(levels)


def levels_of_release(release: str, features: Sequence[Feature]) -> dict[str, int]:
    """Return the levels that a release sets by default, for the features that the cluster has; ``kraft.version`` only by name.

    As ``kafka-features upgrade --release-version``: a feature is never lowered.
    """
    level = metadata_level(release)
    wanted = {METADATA: level}
    for name, known in LEVELS.items():
        default = max((each for each, what in known.items() if what.metadata <= level), default=0)
        if name != KRAFT and default:
            wanted[name] = default
    return {one.name: wanted[one.name] for one in features if wanted.get(one.name, 0) > one.finalized}


def check_ranges(after: Mapping[str, int], supported: Mapping[int, Mapping[str, tuple[int, int]]]) -> None:
    """Check that every broker supports the levels.

    :param supported: ranges by feature, by broker
    :raises Refused: for the first that does not
    """
    for name, level in after.items():
        for broker, ranges in sorted(supported.items()):
            least, most = ranges.get(name, (0, 0))
            if level and not least <= level <= most:
                has = f"supports {least} to {most}" if most else "does not have this feature"
                hint = "upgrade the broker first" if level > most else f"the lowest level that it supports is {least}"
                raise Refused(f"{name}={level}: broker {broker} {has}", hint=hint, feature=name, broker=broker)


def known_names(names: Collection[str], features: Sequence[Feature]) -> None:
    """Check that the cluster has these features.

    :raises UsageProblem: for the first that it does not have
    """
    known = [one.name for one in features]
    for name in names:
        if name not in known:
            raise UsageProblem(f"this cluster has no feature {name}", hint=f"it has {', '.join(known)}", feature=name)
