"""Groups for tests: live members, and the broker's answers without kops."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer

from support.patience import HANG_SECONDS
from support.streams_apps import Cluster, wait_for

STREAM_TIME_130 = "AgAAAAAAAACC"
"""The metadata with which Kafka Streams commits at partition time 130."""


@contextlib.contextmanager
def member(servers: str, group: str, *topics: str, consumer: Any = None, **settings: Any) -> Iterator[Any]:
    """Keep a consumer in a group until the block ends; it has its partitions when the block starts. It commits nothing."""
    config = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "latest"}
    joined = consumer or Consumer({**config, **{name.replace("_", "."): value for name, value in settings.items()}})
    done, assigned = threading.Event(), threading.Event()
    # A consumer belongs to one thread: asking it for its assignment while another polls blocks both.
    joined.subscribe(list(topics), **({} if consumer else {"on_assign": lambda *_: assigned.set()}))

    def stay() -> None:
        while not done.is_set():
            joined.poll(0.05)

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        if consumer is None:
            assert assigned.wait(HANG_SECONDS), f"{group} gets no partitions"
        yield joined
    finally:
        done.set()
        thread.join()
        joined.close()


@contextlib.contextmanager
def visitor(servers: str, group: str, *topics: str) -> Iterator[None]:
    """Keep a consumer in a group when the block starts that leaves half a second later."""
    joined, leave = threading.Event(), threading.Event()

    def visit() -> None:
        with member(servers, group, *topics):
            joined.set()
            leave.wait(HANG_SECONDS)

    thread = threading.Thread(target=visit)
    thread.start()
    assert joined.wait(HANG_SECONDS)
    threading.Timer(0.5, leave.set).start()
    yield
    thread.join()


def visible(create: Callable[..., str], cluster: Cluster) -> Callable[..., str]:
    """Wrap the ``topic`` fixture: the broker that is asked next must have heard of the topic."""

    def made(*arguments: Any, **options: Any) -> str:
        name = create(*arguments, **options)
        wait_for(f"the broker to know {name}", lambda: name in cluster.topics(name))
        return name

    return made
