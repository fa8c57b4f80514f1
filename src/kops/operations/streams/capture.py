"""Capture a program: start it under the agent until it constructs KafkaStreams, and keep what it says of itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kops.config.files import read_bytes, read_json, read_text
from kops.config.properties import parse_properties
from kops.core.durations import duration_text
from kops.core.errors import ConfigError, OperationFailed, TimedOut, UsageProblem
from kops.core.streams.capture import Capture
from kops.core.streams.capture_differences import Difference, differences, internal_topics
from kops.core.streams.capture_file import FORMAT, public_capture, read_capture
from kops.core.streams.topology import Topology, parse_topology
from kops.gateways.machine.agent import LAUNCH, AgentRun, command_text, ended_text, printed_text, run_under_agent
from kops.gateways.machine.jdk import find_java
from kops.operations.services import Services
from kops.operations.streams.inspection import Inspection

_NO_AGENT = (
    "it must start java on this machine and keep the environment variable JAVA_TOOL_OPTIONS: containers, `env -i`, `sudo`, native images"
    " and launchers that clear the environment do not; give the java command itself"
)
_LACKING = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError): ([\w.$/]+)")
_MARK = re.compile(rb'"format"\s*:\s*"' + FORMAT.encode() + rb'"')
_TOO_OLD = "the agent needs Java 11 or newer; start the program with that for the capture"


def capture_program(command: Sequence[str], milliseconds: int) -> dict[str, Any]:
    """Start a program and return the capture that its file holds.

    :param milliseconds: how long it may take to construct KafkaStreams
    :raises OperationFailed: when it ends before, or its topology cannot be read
    :raises TimedOut: when it takes longer
    """
    return _captured(run_under_agent(command, seconds=milliseconds / 1000), command_text(command), milliseconds)


def capture_method(place: str, class_path: Sequence[str], properties: Mapping[str, str], milliseconds: int) -> dict[str, Any]:
    """Call a static method that returns a Topology or a StreamsBuilder, and return the capture.

    :param place: such as ``com.acme.App::topology``
    :param properties: the program's settings
    :raises UsageProblem: when they cannot be used
    """
    if not re.fullmatch(r"[\w.$]+::\w+", place):
        raise UsageProblem(f"{place!r} names no method", hint="write it like com.acme.App::topology")
    if not properties.get("application.id"):
        raise UsageProblem("the settings have no application.id", hint="name a file with the program's settings: --properties FILE")
    for entry in class_path:
        if not Path(entry.removesuffix("*")).exists():
            raise UsageProblem(f"there is no {entry}, which the class path names")
    command = [str(find_java()), "-cp", os.pathsep.join(class_path), LAUNCH, place]
    run = run_under_agent(command, seconds=milliseconds / 1000, properties=properties)
    return _captured(run, place, milliseconds)


def read_properties(path: str | None) -> dict[str, str]:
    """Read a Java properties file; without one there are no settings.

    :raises ConfigError: when it cannot be read
    """
    return {} if path is None else parse_properties(read_text(Path(path)), path)


def _captured(run: AgentRun, what: str, milliseconds: int) -> dict[str, Any]:
    if run.capture is not None:
        body: dict[str, Any] = public_capture(run.capture)
        read_capture(body, "what the agent wrote")  # so that no file is written that cannot be read
        return body
    printed = printed_text(run.output)
    if run.failure is not None:
        raise _unreadable(run.failure, what)
    if run.exit_code is None:
        seen = "it has not constructed KafkaStreams" if run.jvms else "it started no JVM that took the agent"
        raise TimedOut(
            f"{what} was ended after {duration_text(milliseconds)}: {seen}{printed}",
            hint="give it longer with --within" if run.jvms else _NO_AGENT,
        )
    ended = ended_text(run.exit_code)
    if "UnsupportedClassVersionError" in run.output and "kops/agent" in run.output:
        raise OperationFailed(f"{what} runs on a Java that is too old{printed}", hint=_TOO_OLD)
    lacking = _LACKING.findall(run.output)
    if lacking and run.exit_code:
        name = lacking[-1].replace("/", ".")
        raise OperationFailed(f"{what} {ended}: the class path lacks {name}{printed}", hint="add the jar that has it")
    if not run.jvms:
        raise OperationFailed(f"{what} {ended} and started no JVM that took the agent{printed}", hint=_NO_AGENT)
    raise OperationFailed(
        f"{what} {ended} before it constructed KafkaStreams{printed}",
        hint="it must get as far as that: give it the arguments, variables and services that it needs for its start",
    )


def _unreadable(failure: Mapping[str, Any], what: str) -> OperationFailed:
    missing = failure.get("missing_class")
    if missing:
        return OperationFailed(f"{what}: the class path lacks {missing}", hint="add the jar that has it")
    error = failure.get("error")
    said = f"{failure.get('problem')}{f': {error}' if error else ''}"
    return OperationFailed(f"{what}: {public_capture(said)}", trace=public_capture(failure.get("trace") or ""))


def save_capture(body: Mapping[str, Any], path: str) -> None:
    """Write a capture into a file, one that exists included.

    :raises ConfigError: when it cannot be written
    """
    try:
        Path(path).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def load_capture(path: str) -> Capture:
    """Read a file that ``kops streams capture`` wrote.

    :raises ConfigError: when it cannot be read, or is something else
    """
    return read_capture(read_json(Path(path), hint="kops streams capture --out FILE -- COMMAND writes a capture"), path)


def is_capture(path: str) -> bool:
    """Whether a file is one that ``kops streams capture`` wrote, of any version, whole or not; False too for one that cannot be read."""
    try:
        content = read_bytes(Path(path))
    except ConfigError:  # who reads it says why
        return False
    return content.lstrip().startswith(b"{") and _MARK.search(content) is not None


def read_program(path: str) -> tuple[Capture, Topology]:
    """Read a capture, and the topology that it has.

    :raises ConfigError: when it cannot be read, or is something else
    """
    found = load_capture(path)
    return found, parse_topology(found.description, path)


def named_application(application: str | None, program: Capture | None) -> str:
    """Return the application that is named, or else that of a capture.

    :raises UsageProblem: when there is neither, or they differ
    """
    name = application or (program.application if program else None)
    if name is None:
        raise UsageProblem("no application is named", hint="name the APPLICATION, or --capture FILE")
    if program and program.application != name:
        raise UsageProblem(f"the capture is of {program.application}, not of {name}")
    return name


def capture_row(capture: Capture, path: str) -> dict[str, Any]:
    """Describe a capture in a few words, for its row."""
    return {
        "application": capture.application,
        "file": path,
        "streams_version": capture.streams_version,
        "class_path_sha256": capture.class_path_sha256,
        "subtopologies": sum(not each.is_global for each in capture.subtopologies),
        "stores": [
            {
                "store": store.name,
                "kind": store.kind,
                "subtopology": found.number if (found := capture.subtopology_of(store.name)) else None,
                "changelog": store.changelog,
                "caching": store.caching,
                "headers": store.headers,
            }
            for store in (*capture.stores, *capture.global_stores)
        ],
        "unknown": [{"what": what, "why": why} for what, why in capture.unknown],
    }


def program_differences(services: Services, capture: Capture, look: Inspection) -> list[Difference]:
    """Return the differences between the cluster and a program.

    :param look: the application as it was found on the cluster
    """
    doubted = {doubt.topic for doubt in look.doubts}
    own = [topic for topic in (*look.internal, *look.others) if topic not in doubted]
    existing = [topic for topic in internal_topics(capture) if topic in look.partitions]
    found = services.kafka.topics.settings(existing, missing_ok=True) if existing else {}
    settings = {topic: {name: setting.value for name, setting in each.items()} for topic, each in found.items()}
    return differences(capture, look.partitions, settings, own)


def difference_row(difference: Difference) -> dict[str, Any]:
    return {
        "topic": difference.topic,
        "store": difference.store,
        "difference": difference.kind,
        "setting": difference.setting,
        "program": difference.program,
        "cluster": difference.cluster,
    }


def capture_notes(capture: Capture) -> list[str]:
    """Say what a rebuild of the program by its own code cannot take for granted, and what could not be read."""
    notes = [f"{what} is unknown: {why}" for what, why in capture.unknown]
    clocked = [each.name for each in capture.program_processors if each.may_act_on_wall_clock]
    if clocked:
        notes.append(f"processors that may act on wall-clock time: {', '.join(clocked)}")
    if capture.custom_partitioners:
        listed = ", ".join(f"{each.topic} ({each.partitioner})" for each in capture.custom_partitioners)
        notes.append(f"repartition topics with a partitioner of the program's own: {listed}")
    return notes
