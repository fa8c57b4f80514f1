"""The process that forks Python workers: PySpark's daemon with a shorter module search path.

Spark puts archives, including its own jar, first on Python's path, and a worker reads the directory of each again before every task
(``importlib.invalidate_caches``), which takes 0.1 s: longer than some tasks. What workers need is imported once, before they are
forked, so they share its memory: with two workers, the median of three paired rebuilds of 400,000 records took 732 MB, with PySpark's own
daemon 784 MB, 7 % more.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_OF_SPARK = re.compile(r"(spark-core_.*\.jar|pyspark\.zip|py4j-.*\.zip)")


def without_archives(path: list[str]) -> list[str]:
    """Return a search path without Spark's archives, unless PySpark is imported from them."""
    kept = [place for place in path if not _OF_SPARK.fullmatch(Path(place).name)]
    return kept if all(PathFinder.find_spec(name, kept) for name in ("pyspark", "py4j")) else path


if __name__ == "__main__":
    kept = without_archives(sys.path)
    for place in {*sys.path} - {*kept}:
        sys.path_importer_cache.pop(place, None)
    sys.path[:] = kept

    import google_crc32c  # noqa: F401 - for the workers
    import numpy  # noqa: F401
    import pyarrow.compute  # noqa: F401

    import kops.gateways.wire.socket_buffers
    import kops.spark.replay.tasks
    from kops.spark.driver.pyspark_internals import ONLY_TASKS, run_worker_daemon

    if not os.environ.get(ONLY_TASKS):
        import pandas  # noqa: F401 - pyarrow imports it for its first array: 0.2 s in each worker

        import kops.gateways.wire.batch_producer
        import kops.spark.columns.whole_partitions
        import kops.spark.stores.windows_folds  # noqa: F401

    from kops.gateways.machine.worker_locks import hold_lock

    hold_lock()
    run_worker_daemon()
