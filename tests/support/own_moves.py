"""Applications of ``Moves.java`` that move to another number of partitions, and what they hold and send wherever that lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.own_apps import App, records
from support.streams_apps import Cluster

COUNT, HALF = 800, 400
STORES = ("counts", "letters", "windows", "sessions", "trail")
UNCACHED = "statestore.cache.max.bytes=0"
"""So that every change is sent, and outputs can be compared."""
Found = tuple["bytes | None", "int | None"]
"""A value and its time."""


def made(
    cluster: Cluster,
    application: str,
    folder: Path,
    partitions: int = 4,
    count: int = HALF,
    name: str = "moves",
    settings: Sequence[str] = (),
    **more: Any,
) -> App:
    """Return an application that has processed the first records."""
    app = App(cluster, name, application, folder / "app", main="Moves", settings=(UNCACHED, *settings), **more)
    cluster.create_all({app.topic("in"): partitions, app.topic("out"): 1, app.topic("trails"): 1})
    cluster.produce(app.topic("in"), records(COUNT)[:count])
    app.run()
    return app


def captured(run_kops: Callable[..., Any], app: App) -> Path:
    out = app.folder / "capture.json"
    run_kops("streams", "capture", "--out", out, "--", *app.command).ok()
    return out


def of_all(app: App, store: str) -> dict[bytes, Found]:
    """Return value and time of each key, wherever it lies."""
    return {key: (entry.value, entry.timestamp) for key, entry in app.view(store).items()}


def of_live(app: App, store: str) -> dict[bytes, Found]:
    """Return them without those that were deleted: of these a tombstone is left only where nothing moved since."""
    return {key: found for key, found in of_all(app, store).items() if found[0] is not None}


def sent(app: App, topic: str) -> Mapping[bytes | None, list[Found]]:
    """Return values and times by key: between keys there is no order."""
    found: dict[bytes | None, list[Found]] = defaultdict(list)
    for record in app.cluster.read(app.topic(topic)):
        found[record.key].append((record.value, record.timestamp))
    return found
