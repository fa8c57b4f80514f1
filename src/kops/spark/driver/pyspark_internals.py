"""The parts of PySpark and py4j that kops uses below their documented API: the JVM behind a session, its status store, the worker daemon.

Nothing else uses these parts. ``tests/unit/spark/driver/test_pyspark_internals.py`` checks that the installed release has them; tests with
a real Spark check what they return.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Environment variable of a driver's JVM: the file to which it writes its port and secret, for ``PYSPARK_GATEWAY_PORT`` and ``_SECRET``."""

ONLY_TASKS = "KOPS_ONLY_TASKS"
"""Environment variable of the daemon: set if its workers get no rows, so that they need no pandas, which takes 0.2 s to import."""


def jvm(session: SparkSession) -> Any:
    """Return py4j's view of the session's JVM; attributes are packages, classes and their static methods."""
    return session.sparkContext._jvm


def stages(session: SparkSession) -> Callable[[], Any]:
    """Return a function that returns Spark's own record of its stages, as a Scala sequence, newest first.

    :raises Exception: where there is none, as with Spark Connect
    """
    context: Any = session.sparkContext
    store = context._jsc.sc().statusStore()
    no_quantiles = context._gateway.new_array(context._jvm.double, 0)
    no_tasks = context._jvm.java.util.ArrayList()
    return lambda: store.stageList(None, False, False, no_quantiles, no_tasks)


def run_worker_daemon() -> None:
    """Run as the process that forks Python workers.

    A worker collects garbage after each task. What the daemon has imported lives as long as the worker and is left out: looking at it takes
    0.05 s, and copies the memory that is shared with the daemon.
    """
    from pyspark.daemon import manager

    gc.freeze()
    manager()
