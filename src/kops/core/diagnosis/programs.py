"""Findings about an application from its program: where its internal topics are not as it needs them, and what none can rebuild. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kops.core.findings import Finding, Severity, command, counted, names_text
from kops.core.streams.capture import Capture
from kops.core.streams.capture_differences import MISSING, NOT_IN_PROGRAM, PARTITIONS, SETTING, Difference

_POLICY, _KEPT = "cleanup.policy", ("retention.ms", "retention.bytes")


def program_findings(capture: Capture, differences: Sequence[Difference], path: str, known: Iterable[str] = ()) -> Iterator[Finding]:
    """Yield the findings about a program.

    :param differences: from the cluster, on which the application has run
    :param path: of the capture, for commands
    :param known: topics that another finding says to be missing
    """
    group, look = f"group {capture.application}", command("streams", "describe", "--capture", path)
    missing = [each for each in differences if each.kind == MISSING and each.topic not in {*known}]
    if missing:
        yield _missing(group, missing, (look, *_rebuilds(path, missing)))
    for each in differences:
        if each.kind == PARTITIONS:
            text = f"has {each.cluster} partitions, and the program needs {each.program}: it does not start"
            if each.store:
                commands = (look, *_rebuilds(path, [each]))
            else:
                text += "; once all of it is processed, it can be deleted with all instances stopped: the program creates it again"
                commands = (command("groups", "lag", capture.application), command("topics", "delete", each.topic), look)
            facts = {"store": each.store, "program": each.program, "cluster": each.cluster, "group": capture.application}
            yield Finding(Severity.CRITICAL, "program_partitions", f"topic {each.topic}", text, commands, facts)
        elif each.kind == SETTING:
            yield _setting(each)
    left = [each.topic for each in differences if each.kind == NOT_IN_PROGRAM]
    if left:
        text = f"the program has no such internal topics: {names_text(left)}; another version of it may have left them"
        yield Finding(Severity.NOTE, "not_in_program", group, text, (look,), {"topics": left})
    yield from _program_findings(capture, group, path)


def _rebuilds(path: str, differences: Iterable[Difference]) -> tuple[str, ...]:
    """Return the command that recreates changelogs."""
    stores = sorted({each.store for each in differences if each.store})
    named = [word for store in stores for word in ("--store", store)]
    return (command("state", "rebuild", "--app", path, *named, "--write", "replace"),) if stores else ()


def _missing(group: str, missing: Sequence[Difference], commands: tuple[str, ...]) -> Finding:
    topics, changelogs = [each.topic for each in missing], [each for each in missing if each.store]
    text = f"internal topics that the program has are missing: {names_text(topics)}"
    if changelogs:
        text += "; stores that are restored now come back empty: do not start it"
    return Finding(Severity.CRITICAL, "program_topics_missing", group, text, commands, {"topics": topics})


def _setting(found: Difference) -> Finding:
    """Return the severity of a setting: critical if the broker deletes what the application restores from."""
    name, loses = found.setting or "", False
    if name == _POLICY:
        loses = "delete" in (found.cluster or "") and "delete" not in (found.program or "")
    elif name in _KEPT:
        loses = _less(found.cluster, found.program)
    text = f"{name} is {found.cluster}, and {found.program} in the program"
    text += ": records from which its store is restored are deleted" if loses else ""
    repair = command("topics", "alter", found.topic, "--config", f"{name}={found.program}")
    facts = {"store": found.store, "setting": name, "program": found.program, "cluster": found.cluster}
    severity = Severity.CRITICAL if loses else Severity.WARNING
    return Finding(severity, "program_settings", f"topic {found.topic}", text, (repair,), facts)


def _less(cluster: str | None, program: str | None) -> bool:
    """Whether a limit is shorter; -1 says that there is no limit."""
    try:
        ours, theirs = int(cluster or -1), int(program or -1)
    except ValueError:
        return False
    return ours >= 0 and (theirs < 0 or ours < theirs)


def _program_findings(capture: Capture, group: str, path: str) -> Iterator[Finding]:
    def note(check: str, text: str, names: list[str], *words: str) -> Finding:
        return Finding(Severity.NOTE, check, group, text, (command(*words),) if words else (), {"names": names})

    unlogged = [store.name for store in capture.stores if store.changelog is None]
    if unlogged:
        text = f"{counted(len(unlogged), 'store')} without a changelog, lost with the instance that has it: {names_text(unlogged)}"
        yield note("stores_without_changelog", text, unlogged)
    verify = ("state", "verify", "--app", path)
    clocked = [node.name for node in capture.program_processors if node.may_act_on_wall_clock]
    if clocked:
        text = f"processors may act on wall-clock time, which a rebuild by the program does not repeat: {names_text(clocked)}"
        yield note("wall_clock_punctuators", text, clocked, *verify)
    own = [f"{sink.topic} by {sink.partitioner}" for sink in capture.custom_partitioners]
    if own:
        text = f"the program's own partitioners choose where keys are: {names_text(own)}; a state file needs `partitioner: custom`"
        yield note("custom_partitioners", text, own, *verify)
    if capture.unknown:
        text = f"could not be read of the program: {names_text([f'{what} ({why})' for what, why in capture.unknown])}"
        yield note("program_unknown", text, [what for what, _ in capture.unknown])
