"""Applications that never ran: their topics and commits, as tests set them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from support.programs import Program, Record
from support.streams_apps import Cluster
from support.streams_cases import START

COUNT = Program("count", "long", value="string")
KEYS = (b"k3", b"k1", b"k4")
"""The default partitioner puts them into partitions 0, 1 and 0 of two."""
INPUT = [Record(KEYS[at % 3], b"v", START + at, (), at % 3 % 2) for at in range(10)]
OLD = [Record(b"old", b"\x00" * 8, START, (), 0)]


class Stage:
    """The topics of an application that does not run: its input, a changelog with something in it, and its commits."""

    def __init__(self, cluster: Cluster, prefix: str, folder, run_kops) -> None:
        self.cluster, self.prefix, self.file, self.run_kops = cluster, prefix, folder / "state.yaml", run_kops

    def set(self, program: Program = COUNT, records=INPUT, *, changelog_partitions=2, changelog_config=None, commit=True) -> Program:
        program = program.named(self.prefix)
        cluster = self.cluster
        cluster.create(program.topic, 2)
        cluster.create(program.changelog, changelog_partitions, {"cleanup.policy": "compact", **(changelog_config or {})})
        if program.repartition:
            cluster.create(program.repartition, 2)
        cluster.produce(program.topic, records)
        cluster.produce(program.changelog, OLD)
        if commit:
            ends = {(program.topic, partition): high for partition, (_low, high) in cluster.ends(program.topic).items()}
            cluster.commit(program.application, ends)
        self.file.write_text(json.dumps(program.state_file()), encoding="utf-8")
        return program

    def rebuild(self, *options: str):
        return self.run_kops("state", "rebuild", str(self.file), "-B", self.cluster.servers, "--yes", *options)

    def left(self) -> object:
        """Return everything that a rebuild could change."""
        topics = {topic: self.cluster.read(topic) for topic in sorted(self.cluster.topics(self.prefix))}
        return topics, self.cluster.committed(f"{self.prefix}-app")

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.left()
        yield
        assert self.left() == before

    def refused(self, *said: str, options: tuple[str, ...] = ()) -> str:
        """Rebuild, expecting an error of one line and a hint, with these words in it, and nothing written."""
        with self.unchanged():
            outcome = self.rebuild(*options)
        assert outcome.code in (2, 5), (outcome.code, outcome.err)
        assert outcome.out == ""
        error, *rest = [line for line in outcome.err.splitlines() if line.startswith(("kops: error:", "hint:"))]
        assert error.startswith("kops: error:")
        assert rest, f"no hint: {outcome.err}"
        assert "Traceback" not in outcome.err
        for words in said:
            assert words in outcome.err, outcome.err
        return outcome.err
