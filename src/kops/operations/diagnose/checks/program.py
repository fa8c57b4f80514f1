"""An application against its own program, with ``--capture``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.programs import program_findings
from kops.core.findings import Finding
from kops.core.streams.capture_differences import Difference
from kops.operations.diagnose.check import GROUP, Check, NotAsked
from kops.operations.diagnose.checks.streams_topics import CHECK as STREAMS_TOPICS
from kops.operations.diagnose.incident import Incident
from kops.operations.streams.capture import program_differences
from kops.operations.streams.inspection import inspect_application


def _look(incident: Incident) -> Mapping[str, list[Difference]]:
    """Compare topics; of a program that has not run on this cluster, none of its topics is missed."""
    if incident.program is None and not STREAMS_TOPICS.look(incident):
        return {}
    if incident.program is None:
        raise NotAsked("--capture FILE compares an application with its program; `kops streams capture` makes that file")
    name = incident.program.application
    found = inspect_application(incident.services, name)
    return {name: program_differences(incident.services, incident.program, found)}


def _find(seen: Mapping[str, list[Difference]], incident: Incident) -> Iterable[Finding]:
    if incident.program is not None:
        for differences in seen.values():
            others = STREAMS_TOPICS.look(incident).values()
            known = [one.topic for application in others for one in application.missing]
            yield from program_findings(incident.program, differences, incident.options.capture, known)


CHECK = Check(
    "its own program",
    GROUP,
    (
        *("program_topics_missing", "program_partitions", "program_settings", "not_in_program"),
        *("stores_without_changelog", "wall_clock_punctuators", "custom_partitioners", "program_unknown"),
    ),
    "--capture",
    _look,
    _find,
)
