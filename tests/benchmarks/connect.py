"""What kops adds to a Connect worker's own answer: `kops connect status` and `list` of many connectors.

    python tests/benchmarks/connect.py [--connectors 200] [--tasks 4] [--runs 20] [--url http://127.0.0.1:8083]

The worker is one that answers at once, with connectors of realistic configurations and a failed task in every tenth, so that what is
measured is kops; or a real one, whose own answer is timed too. `kops connect status` of 200 connectors, as JSON and as a table, is to
stay within 400 ms of CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from measure import measured
from start import imports, installed, show

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.faulty_connect import Answer, FaultyWorker, expanded

LIMIT_MS = 400
EXPANDED = "/connectors?expand=status&expand=info"
TRACE = "org.apache.kafka.connect.errors.ConnectException: the task failed\n" + "\tat org.example.Task.run(Task.java:1)\n" * 60
TRACE += "Caused by: java.io.IOException: No space left on device\n\tat org.example.Disk.write(Disk.java:7)\n"
COMMANDS = (("status", "-o", "json"), ("status",), ("list", "-o", "json"), ("list",))
FAILED_EVERY = 10


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--url", help="a real worker, with the connectors that it has")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, worker(options) as url:
        folder = Path(name)
        os.environ |= {"KOPS_CONNECT_URLS": url, "XDG_CONFIG_HOME": name, "XDG_STATE_HOME": name}
        found, size, seconds = asked(url)
        print(f"{found} connectors, {size / 1024:.0f} KiB; the worker's own answer: {1000 * seconds:.0f} ms", flush=True)
        for words in COMMANDS:
            command = [installed(), "connect", *words]
            runs = [measured(command, folder / "out.txt", codes=(0, 1)) for _ in range(options.runs)]
            show(f"kops connect {' '.join(words)}", runs, LIMIT_MS if words[0] == "status" else None)
        for package, milliseconds in imports(["connect", "list", "-o", "json"]):
            print(f"    {milliseconds:6.1f} ms  {package}")
    return 0


@contextlib.contextmanager
def worker(options: argparse.Namespace) -> Iterator[str]:
    """Give the address of the worker to ask."""
    if options.url:
        yield options.url
        return
    one = FaultyWorker(Answer(200, {name: body(name, number, options.tasks) for number, name in enumerate(names(options.connectors))}))
    try:
        yield one.url
    finally:
        one.stop()


def names(count: int) -> list[str]:
    """Return names of connectors."""
    return [f"shop-{number:04}-orders-to-warehouse" for number in range(count)]


def body(name: str, number: int, tasks: int) -> dict[str, Any]:
    """Return a connector as Connect expands it."""
    states = ["FAILED" if number % FAILED_EVERY == 0 and task == 0 else "RUNNING" for task in range(tasks)]
    config = {f"transforms.step{step}.some.setting.of.it": f"value-{number}-{step}" for step in range(20)}
    config |= {"name": name, "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": f"orders-{number}"}
    config |= {"connection.url": f"jdbc:postgresql://db-{number}:5432/shop?user=kops", "connection.password": "${file:/run/db:password}"}
    return expanded(name, *states, trace=TRACE, config=config)


def asked(url: str) -> tuple[int, int, float]:
    """Return how many connectors a worker has, the bytes of its answer, and how long it takes."""
    seconds, text = [], b"{}"
    for _ in range(5):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        started = time.monotonic()
        connection.request("GET", EXPANDED)
        text = connection.getresponse().read()
        seconds.append(time.monotonic() - started)
        connection.close()
    return len(json.loads(text)), len(text), statistics.median(seconds)


if __name__ == "__main__":
    raise SystemExit(main())
