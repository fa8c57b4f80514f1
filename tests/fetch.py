"""Fetches what the tests on real parts need and the cache does not have, and runs them.

    python tests/fetch.py COMMAND...

The command starts when the jars of Kafka and Spark are there with the archive of their classes. The rest is fetched meanwhile, which is
mostly waiting for answers: a test that needs it before it is there waits for it. What cannot be fetched is named, and the tests that need
it are left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from kops.config.paths import directories
from kops.core.errors import KopsError
from kops.gateways.connect.plugins import FILE_STREAM, plugin_folder
from kops.gateways.machine.archives import registry_folder
from kops.gateways.machine.jars import connect_set, jars_of, kafka_set, spark_kafka_set
from support import class_archive
from support.captured import BOOT_LOADER, EXAMPLES, QUARKUS
from support.connect import CONVERTER, FOR_DATABASES, name_converters
from support.dead_letters import SMALLRYE, SPRING
from support.java_judge import JUDGE
from support.older_streams import older_set
from support.own_code import BETWEEN
from support.skipped import LONG
from support.tiered import storage_jar
from support.zookeeper_kafka import zookeeper_set

Fetch = Callable[[Path], object]
FOR_LONG_VARIANTS: dict[str, Fetch] = {
    "kafka 4.3.1": lambda cache: jars_of(kafka_set("4.3.1"), cache),
    "kafka 3.3.2": lambda cache: jars_of(kafka_set("3.3.2"), cache),
    "kafka 3.9.1": lambda cache: jars_of(kafka_set("3.9.1"), cache),
    "kafka 4.0.2": lambda cache: jars_of(kafka_set("4.0.2"), cache),
    "kafka 2.8.2": partial(jars_of, zookeeper_set()),
    "tiered storage 4.3.1": lambda cache: storage_jar(cache, "4.3.1"),
    **{f"streams {version}": partial(jars_of, older_set(version)) for version in BETWEEN},
    "streams-examples": lambda cache: jars_of(EXAMPLES, cache),
    "spring-boot-loader": lambda cache: jars_of(BOOT_LOADER, cache),
    "quarkus": lambda cache: jars_of(QUARKUS, cache),
    **{jars.name: partial(jars_of, jars) for jars in (SPRING, SMALLRYE)},
}
WANTED: dict[str, Fetch] = {
    "kafka": lambda cache: jars_of(kafka_set(), cache),
    "spark-kafka": lambda cache: jars_of(spark_kafka_set(), cache),
    "connect": lambda cache: jars_of(connect_set(), cache),
    FILE_STREAM: partial(plugin_folder, coordinate=FILE_STREAM),
    "registry": registry_folder,
    **{coordinate: partial(plugin_folder, coordinate=coordinate) for coordinate in FOR_DATABASES},
    CONVERTER: lambda cache: name_converters(plugin_folder(cache, CONVERTER)),
    "java-judge": lambda cache: jars_of(JUDGE, cache),
    "kafka 4.1.1": lambda cache: jars_of(kafka_set("4.1.1"), cache),
    "streams 2.8.2": lambda cache: jars_of(older_set(), cache),
    "kafka 3.6.2": lambda cache: jars_of(kafka_set("3.6.2"), cache),
    "tiered storage 4.1.1": lambda cache: storage_jar(cache, "4.1.1"),
    **(FOR_LONG_VARIANTS if os.environ.get(LONG) else {}),
}
"""In the order in which the lanes need them."""
FOR_THE_ARCHIVE = ("kafka", "spark-kafka")
OLDER = ("kafka 4.1.1", "streams 2.8.2", "kafka 3.6.2")
"""Whose POMs are read: while the archive is made, the processors are for that."""


def _fetch_and_say(name: str) -> None:
    try:
        WANTED[name](directories(os.environ).cache)
        print(f"{name} is there", flush=True)
    except (KopsError, OSError) as missing:
        print(f"{name}: {missing}", flush=True)


def main(command: Sequence[str]) -> int:
    """Fetch, run the command, and return its exit code."""
    print(f"fetching what is not there yet of {', '.join(WANTED)}", flush=True)
    with ThreadPoolExecutor(len(WANTED)) as pool:
        wait([pool.submit(_fetch_and_say, name) for name in FOR_THE_ARCHIVE])
        for name in WANTED:
            if name not in (*FOR_THE_ARCHIVE, *OLDER):
                pool.submit(_fetch_and_say, name)
        try:
            class_archive.make()
        except (KopsError, OSError, subprocess.SubprocessError) as trouble:
            print(f"no archive of classes, without which all is slower: {trouble}", flush=True)
        for name in OLDER:
            pool.submit(_fetch_and_say, name)
        return subprocess.run(command, check=False).returncode if command else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
