"""Changes of an application's state that an older kops planned and carried out, kept as files, and the cluster as it found it.

``tests/streams/older/KIND/`` has the plan file, the journal entry and what was staged, as kops 0.1.0 wrote them on a cluster that was
set up by ``set_up``. Names of topics begin with ``PREFIX`` and the kind there; ids and paths are put right by ``Kept``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.programs import Program, Record
from support.streams_apps import Cluster
from support.streams_cases import START

FOLDER = Path(__file__).parent.parent / "streams" / "older"
PREFIX, STATE, CLUSTER = "kept-by-kops-0-1-{}", "/kept/state", "kept-cluster"
KINDS = ("rebuild", "replace", "into", "restore", "repartition")
PARTITIONS, MORE = 2, 3
COUNT = Program("count", "long", value="bytes")
ONE = struct.pack(">q", 1)
RECORDS = [Record(b"key-%d" % at, b"x", START + at) for at in range(12)]
WRONG = Record(b"key-1", b"wrong", START, (), 0)


@dataclass(frozen=True)
class Application:
    """An application that does not run, and the command that an older kops was given for it."""

    program: Program
    command: tuple[str, ...]
    confirm: str
    changed: str


def set_up(cluster: Cluster, kind: str, prefix: str, folder: Path) -> Application:
    """Make the topics, commits and state file of an application; ``changed`` is the changelog that the command writes."""
    program = COUNT.named(prefix)
    cluster.create(program.topic, PARTITIONS)
    cluster.create(program.changelog, PARTITIONS, {"cleanup.policy": "compact"})
    cluster.produce(program.topic, RECORDS)
    if kind in ("rebuild", "replace"):
        cluster.produce(program.changelog, [WRONG])
    else:
        cluster.produce(program.changelog, [Record(record.key, ONE, record.timestamp) for record in RECORDS])
    ends = {(program.topic, at): high for at, (_, high) in cluster.ends(program.topic).items()}
    cluster.commit(program.application, {at: high - 1 for at, high in ends.items()} if kind == "rebuild" else ends)
    file = folder / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    if kind == "into":
        new = f"{prefix}-new"
        command = ("state", "rebuild", str(file), "--into", new)
        return Application(program, command, new, f"{new}-{program.store}-changelog")
    if kind == "repartition":
        cluster.create(f"{prefix}-more", MORE)
        cluster.produce(f"{prefix}-more", RECORDS)
        command = ("state", "repartition", str(file), "--partitions", str(MORE), "--input", f"{program.topic}={prefix}-more")
        return Application(program, command, program.application, program.changelog)
    command = {
        "rebuild": ("state", "rebuild", str(file), "--damaged", program.store, "--at", "end"),
        "replace": ("state", "rebuild", str(file), "--damaged", program.store, "--write", "replace"),
        "restore": ("state", "restore", str(folder / "snapshot")),
    }[kind]
    return Application(program, command, program.changelog if kind == "replace" else program.application, program.changelog)


def topic_ids(run_kops, servers: str, prefix: str) -> dict[str, str]:
    """Return the ids of the topics that begin with a prefix."""
    rows = run_kops("topics", "describe", f"{prefix}*", "-B", servers, "-o", "json").ok().json
    return {row["name"]: row["topic_id"] for row in rows}


@dataclass(frozen=True)
class Kept:
    """What an older kops wrote, fitted to a cluster of now.

    :param state: the state folder of the kops of now
    """

    kind: str
    prefix: str
    cluster_id: str
    state: Path

    def plan(self, ids: dict[str, str]) -> dict[str, Any]:
        """Return the plan file, its topics those of ``ids``."""
        plan = self._with_ids(self._read("plan.json"), ids)
        plan.pop("digest")
        text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
        return {**plan, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}

    def entry(self, ids: dict[str, str]) -> dict[str, Any]:
        """Return the journal entry as it was when the change was done."""
        entry = self._read("entry.json")
        return {**entry, "plan": self._with_ids(entry["plan"], ids)}

    def crashed(self, ids: dict[str, str]) -> dict[str, Any]:
        """Return the journal entry as it was before the first change, its process gone."""
        opened = {"status": "open", "ended": "", "results": [], "rest": "", "left": None, "pid": 2**22 + 1, "process_started": ""}
        return {**self.entry(ids), **opened}

    def done(self, ids: dict[str, str], made: dict[str, str]) -> dict[str, Any]:
        """Return the journal entry of a change that is done, the topics that it made being those of ``made``."""
        entry = self.entry(ids)
        for result in entry["results"]:
            if result["target"] in made and (result["value"] or {}).get("topic_id"):
                result["value"] = {"topic_id": made[result["target"]]}
        left = {**entry["left"], "topics": {name: made.get(name) for name in entry["left"]["topics"]}}
        return {**entry, "left": left}

    def install(self, entry: dict[str, Any]) -> str:
        """Put an entry into the journal, and what was staged beside it; return its id."""
        journal = self.state / "journal"
        journal.mkdir(parents=True, exist_ok=True)
        (journal / f"{entry['id']}.json").write_text(json.dumps(entry), encoding="utf-8")
        self.stages()
        return str(entry["id"])

    def stages(self) -> None:
        """Put what was staged where the plan looks for it."""
        for name in ("stages", "kept"):
            for stage in (FOLDER / self.kind).glob(f"{name}/*"):
                shutil.copytree(stage, self.state / name / stage.name.replace(PREFIX.format(self.kind), self.prefix), dirs_exist_ok=True)

    def _read(self, name: str) -> dict[str, Any]:
        text = (FOLDER / self.kind / name).read_text(encoding="utf-8")
        for before, now in ((PREFIX.format(self.kind), self.prefix), (STATE, str(self.state)), (CLUSTER, self.cluster_id)):
            text = text.replace(before, now)
        body: dict[str, Any] = json.loads(text)
        return body | ({"host": _host()} if "host" in body else {})

    def _with_ids(self, plan: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
        guard, arguments = dict(plan["guard"]), dict(plan["arguments"])
        if "topic_ids" in guard:
            guard["topic_ids"] = {name: ids.get(name) for name in guard["topic_ids"]}
        if "topics" in arguments:
            changes = arguments["topics"]
            arguments["topics"] = [
                {**change, "topic_id": ids[change["before"]["name"]] if change["topic_id"] else None} for change in changes
            ]
        return {**plan, "guard": guard, "arguments": arguments}


def _host() -> str:
    import socket

    return socket.gethostname()


def expected(cluster: Cluster, kind: str, application: Application) -> dict[bytes, Record]:
    """Return what the changelog holds afterwards: a count of 1 for each key, in the partition of the default partitioner."""
    like = f"{application.program.topic}" if kind != "repartition" else f"{application.program.topic.rsplit('-', 1)[0]}-more"
    places = {record.key: record.partition for record in cluster.read(like)}
    return {record.key: replace(record, value=ONE, partition=places[record.key]) for record in RECORDS}
