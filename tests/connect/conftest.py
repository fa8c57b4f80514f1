import pytest

from support.streams_apps import wait_for


@pytest.fixture
def kops(run_kops, connect_workers, monkeypatch):
    """Run kops connect on the real workers: ``kops("status", "orders")``; other commands as ``kops.other("undo", "last")``."""
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))

    def run(*arguments, **more):
        return run_kops("connect", *arguments, "-B", connect_workers.bootstrap_servers, **more)

    run.connect_only = lambda *arguments, **more: run_kops("connect", *arguments, **more)
    run.other = lambda *arguments, **more: run_kops(*arguments, "-B", connect_workers.bootstrap_servers, **more)
    return run


@pytest.fixture
def until():
    """Wait for a condition: ``until("the file", file.exists)``."""
    return wait_for


@pytest.fixture
def pipeline(connectors, topic, unique, tmp_path):
    """A file that a source reads into a topic, and a sink writes to another file."""
    from support.connect import FILE_SINK, FILE_SOURCE

    class Pipeline:
        name, lines = topic("lines", partitions=1), [f"line {number}" for number in range(10)]
        source, sink = unique("source"), unique("sink")
        read, written = tmp_path / "in.txt", tmp_path / "out.txt"

        @property
        def output(self):
            return self.written.read_text().splitlines() if self.written.exists() else []

    made = Pipeline()
    made.read.write_text("".join(f"{line}\n" for line in made.lines))
    connectors(made.source, {"connector.class": FILE_SOURCE, "file": str(made.read), "topic": made.name, "tasks.max": "1"})
    connectors(made.sink, {"connector.class": FILE_SINK, "file": str(made.written), "topics": made.name, "tasks.max": "1"})
    wait_for("the rows to pass", lambda: made.output == made.lines)
    return made
