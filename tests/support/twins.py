"""An application that is broken and rebuilt half way, beside a twin that never was."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kops.formats.streams.offset_metadata import OffsetMetadata, encode
from support.command_line import Outcome
from support.programs import Program, Record
from support.streams import Entry, compacted_view
from support.streams_apps import Cluster, run_all_to_the_end

PARTITIONS = 3


@dataclass
class Twin:
    """One application with topics of its own.

    :param folder: its log and local state
    """

    cluster: Cluster
    program: Program
    folder: Path
    guarantee: str

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def state_file(self) -> str:
        file = self.folder / "state.yaml"
        file.write_text(json.dumps(self.program.state_file(self.guarantee)), encoding="utf-8")
        return str(file)

    def view(self) -> dict[bytes, Entry]:
        return compacted_view(self.cluster.read(self.program.changelog))

    def output(self) -> dict[tuple[bytes | None, int | None], list[tuple[bytes | None, int]]]:
        """Return values and timestamps of the output topic by key and partition: between keys there is no order."""
        found: dict[tuple[bytes | None, int | None], list[tuple[bytes | None, int]]] = {}
        for record in self.cluster.read(self.program.output or ""):
            found.setdefault((record.key, record.partition), []).append((record.value, record.timestamp))
        return found

    def committed(self) -> dict[int, int]:
        """Return the committed offsets of the input."""
        found = self.cluster.committed(self.program.application)
        return {partition: offset for (topic, partition), offset in found.items() if topic == self.program.topic}


def make(cluster: Cluster, program: Program, prefix: str, folder: Path, guarantee: str, partitions: int = PARTITIONS) -> Twin:
    named = program.named(prefix)
    named = replace(named, config=(*named.config, ("processing.guarantee", guarantee)))
    cluster.create_all({named.topic: partitions, str(named.output): partitions})
    return Twin(cluster, named, folder, guarantee)


def process(twins: Sequence[Twin], records: Sequence[Record]) -> None:
    """Give each application the same records, and let all process them to the end at once; then all are closed."""
    process_each([(twin, records) for twin in twins])


def process_each(work: Sequence[tuple[Twin, Sequence[Record]]]) -> None:
    """Give each application its records, and let all process them to the end at once; then all are closed."""
    for twin, records in work:
        twin.cluster.produce(twin.program.topic, records)
    first, *_ = (twin for twin, _records in work)
    run_all_to_the_end(first.cluster.servers, [(twin.program, twin.folder) for twin, _records in work])


def rebuild(twin: Twin, kops: Callable[..., Outcome], *options: str) -> None:
    """Show that the state is wrong, rebuild it, and show that it is right."""
    common = (twin.state_file, "-B", twin.cluster.servers)
    wrong = kops("state", "verify", *common)
    assert wrong.code == 1, wrong
    kops("state", "rebuild", *common, "--yes", *options).ok()
    kops("state", "verify", *common).ok()


def keep(folder: Path) -> Path:
    """Copy a folder of local state, to have it stale later."""
    copy = folder.with_name(folder.name + "-kept")
    shutil.copytree(folder, copy)
    return copy


def put_back(copy: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    copy.rename(folder)


@dataclass
class Scene:
    """Applications after their runs, by name, and kops beside them."""

    twins: dict[str, Twin]
    run_kops: Callable[..., Outcome]

    def kops(self, name: str, verb: str, *options: object, file: str = "") -> Outcome:
        """Run a verb of ``kops state``.

        :param file: in place of the application's own state file
        """
        twin = self.twins[name]
        return self.run_kops("state", verb, file or twin.state_file, "-B", twin.cluster.servers, *options)

    def verified(self, name: str, *options: object, code: int = 0, **said: Any) -> dict[str, Any]:
        """Return what ``verify`` says of the only store.

        :param said: what ``kops`` takes further
        """
        found = self.kops(name, "verify", *options, "-o", "json", **said)
        assert found.code == code, found
        return found.json[0]

    def lose(self, name: str, *partitions: int) -> None:
        """Lose partitions of the changelog; all of them when none is named."""
        twin = self.twins[name]
        if partitions:
            twin.cluster.lose({twin.program.changelog: partitions})
        else:
            twin.cluster.empty(twin.program.changelog)


def pass_over(twin: Twin, records: int, time: int) -> None:
    """Move an application forward in partition 0 as a tool does that keeps the metadata: no commit shows it.

    :param time: the partition time that the commit has, in milliseconds
    """
    from kafka import KafkaAdminClient  # librdkafka's commits have no metadata
    from kafka.structs import OffsetAndMetadata, TopicPartition

    program, cluster = twin.program, twin.cluster
    reached = cluster.committed(program.application)[program.topic, 0]
    moved = OffsetAndMetadata(reached + records, encode(OffsetMetadata(time)), -1)
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=cluster.servers.split(","))) as admin:
        admin.alter_group_offsets(program.application, {TopicPartition(program.topic, 0): moved})
    assert cluster.committed(program.application)[program.topic, 0] == reached + records
