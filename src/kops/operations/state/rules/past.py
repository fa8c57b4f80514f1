"""What ``verify`` has found on this machine: a file in kops' state folder for each store and content of its state file.

It holds the last finding, a proof or a contradiction: which is the last, the order of the commands says, and not the clock.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kops.config.durable import write_whole
from kops.config.files import read_json
from kops.core.errors import ConfigError
from kops.core.models import TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.times import time_text, to_milliseconds
from kops.operations.services import Services
from kops.operations.state.rules.statement import REDUCER

FOLDER = "proven"


@dataclass(frozen=True)
class PastProof:
    """A ``verify`` in which every key of a store was proven.

    :param at: when, ISO 8601 in UTC
    :param keys: number of keys that were equal
    :param offsets: up to where the input counted, by partition
    """

    at: str
    keys: int
    offsets: Mapping[str, int]

    @property
    def text(self) -> str:
        """For example ``proven on 2026-11-20 over 1,204,331 keys``."""
        return f"proven on {self.at[:10]} over {self.keys:,} keys"


@dataclass(frozen=True)
class PastDifference:
    """A ``verify`` in which keys of a changelog were different from what the state file computes, or absent although nothing was lost.

    :param at: when, ISO 8601 in UTC
    :param keys: number of such keys, of ``compared``
    :param partitions: that they are in
    """

    at: str
    keys: int
    compared: int
    partitions: tuple[int, ...]

    @property
    def text(self) -> str:
        """For example ``found 3 of 5 keys different on 2026-11-20``."""
        return f"found {self.keys:,} of {self.compared:,} keys different on {self.at[:10]}"


def remembered(services: Services, state_file: StateFile, store: Store) -> PastProof | None:
    """Return the last proof of a store with exactly this state file; None: it was never proven on this machine, or contradicted since."""
    found = _last(services, state_file, store)
    return found if isinstance(found, PastProof) else None


def contradiction(services: Services, state_file: StateFile, store: Store) -> PastDifference | None:
    """Return the last finding with exactly this state file, if it contradicts the file."""
    found = _last(services, state_file, store)
    return found if isinstance(found, PastDifference) else None


def remember(
    services: Services, state_file: StateFile, store: Store, keys: int, offsets: Mapping[TopicPartition, int], *, at: str = ""
) -> PastProof | None:
    """Record that a store was proven, and return the last proof.

    :param at: when the snapshot that it was compared with was taken, ISO-8601 UTC: later findings stay; empty: it was compared with what is
        there now
    :raises OSError: when it cannot be written
    """
    topics = {source.topic for source in store.inputs}
    ends = {str(at): offset for at, offset in sorted(offsets.items()) if at.topic in topics}
    _record(services, state_file, store, PastProof(at or _now(services), keys, ends), past=bool(at))
    return remembered(services, state_file, store)


def remember_difference(
    services: Services, state_file: StateFile, store: Store, partitions: Mapping[int, int], compared: int, *, at: str = ""
) -> None:
    """Record that keys of a changelog contradict the state file.

    :param partitions: by partition, how many keys were different
    :param compared: number of keys in all
    :param at: see ``remember``
    :raises OSError: when it cannot be written
    """
    found = PastDifference(at or _now(services), sum(partitions.values()), compared, tuple(sorted(partitions)))
    _record(services, state_file, store, found, past=bool(at))


def _last(services: Services, state_file: StateFile, store: Store) -> PastProof | PastDifference | None:
    try:
        body = read_json(_path(services, state_file, store))
        if "partitions" in body:
            return PastDifference(body["at"], body["keys"], body["compared"], tuple(body["partitions"]))
        return PastProof(body["at"], body["keys"], body["offsets"])
    except (ConfigError, KeyError, TypeError):
        return None


def _record(services: Services, state_file: StateFile, store: Store, found: PastProof | PastDifference, *, past: bool) -> None:
    before = _last(services, state_file, store)
    if past and before is not None and before.at > found.at:
        return
    path = _path(services, state_file, store)
    about = {"application": state_file.application, "cluster_id": services.kafka.cluster().cluster_id, "store": store.name}
    write_whole(path, json.dumps({**about, "digest": path.stem, **asdict(found)}))


def _now(services: Services) -> str:
    return time_text(to_milliseconds(services.now()))


def _path(services: Services, state_file: StateFile, store: Store) -> Path:
    """Return the file with the proof of a store: one per cluster, application, store, state file and reducer."""
    digest = hashlib.sha256(json.dumps([services.kafka.cluster().cluster_id, state_file.application, store.name]).encode())
    digest.update(state_file.digest.encode())
    if store.aggregate.kind == REDUCER:
        digest.update(_code(store.aggregate.expression))
    return services.directories.state / FOLDER / f"{digest.hexdigest()}.json"


def _code(reference: str) -> bytes:
    """Return the source of the module that a reducer is in; the reference where that cannot be read."""
    try:
        spec = importlib.util.find_spec(reference.partition(":")[0])
        return Path(spec.origin).read_bytes() if spec and spec.origin else reference.encode()
    except (ImportError, OSError, ValueError):
        return reference.encode()
