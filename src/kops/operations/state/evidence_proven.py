"""What ``verify`` has proven on this machine: a file in kops' state folder for each store and content of its state file."""

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
from kops.operations.state.exactness import REDUCER

FOLDER = "proven"


@dataclass(frozen=True)
class PastProof:
    """A ``verify`` in which every surviving key of a store was equal, and there were enough of them to prove it.

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


def remembered(services: Services, state_file: StateFile, store: Store) -> PastProof | None:
    """Return the last proof of a store with exactly this state file; None: it was never proven on this machine."""
    try:
        body = read_json(_path(services, state_file, store))
        return PastProof(body["at"], body["keys"], body["offsets"])
    except (ConfigError, KeyError, TypeError):
        return None


def remember(
    services: Services, state_file: StateFile, store: Store, keys: int, offsets: Mapping[TopicPartition, int], *, at: str = ""
) -> PastProof:
    """Record that a store was proven, unless a later proof is known, and return the last proof.

    :param at: when what it was compared with was taken, ISO-8601 UTC; empty: now
    :raises OSError: when it cannot be written
    """
    path = _path(services, state_file, store)
    topics = {source.topic for source in store.inputs}
    ends = {str(at): offset for at, offset in sorted(offsets.items()) if at.topic in topics}
    proven = PastProof(at or time_text(to_milliseconds(services.now())), keys, ends)
    before = remembered(services, state_file, store)
    if before is not None and before.at > proven.at:
        return before
    about = {"application": state_file.application, "cluster_id": services.kafka.cluster().cluster_id, "store": store.name}
    write_whole(path, json.dumps({**about, "digest": path.stem, **asdict(proven)}))
    return proven


def _path(services: Services, state_file: StateFile, store: Store) -> Path:
    """Return the file with the proof of a store: one per cluster, application, store, state file and reducer."""
    digest = hashlib.sha256(json.dumps([services.kafka.cluster().cluster_id, state_file.application, store.name]).encode())
    digest.update(Path(state_file.path).read_bytes())
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
