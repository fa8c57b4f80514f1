"""A shadow as a change of the cluster: topics and a group of its own, which are there while it runs, and gone afterwards.

Whatever ends it takes it away: success, an error, Ctrl-C. What a killed kops leaves is open in the journal: ``kops journal finish``, and
the next shadow of the application, take it away.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from kops.core.errors import GroupActive, KopsError, NotFound, OperationFailed, VerificationFailed
from kops.core.findings import counted, names_text
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.operations.protocol.journal import Entry, EntryStatus, Journal, crashed
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.protocol.mutation import FinalMutation
from kops.operations.services import Services
from kops.operations.state.input_offsets import refuse_running_group

NAME = "state.shadow"
_GROUP_SECONDS, _LOOK_SECONDS = 60.0, 0.5
"""How long a group may keep a member whose process was killed: the session timeout of a shadow is 10 s."""
_NAMED = 3


@dataclass(frozen=True)
class ShadowRun:
    """How a program runs as a shadow.

    :param carry_out: shows the plan of the shadow, asks, and carries it out
    :param still_ms: how long it may stand still
    """

    carry_out: Callable[[Plan[ShadowArguments]], None]
    still_ms: int


@dataclass(frozen=True)
class ShadowArguments(Arguments):
    """What a shadow is.

    :param application: the real one
    :param shadow: the application id of the shadow, with which its topics begin
    :param command: in words
    :param folder: on this machine, with its local state
    :param topics: that are made for it
    :param work: makes the topics, runs the program and compares, while the plan is carried out; None: what is left is removed
    """

    application: str
    shadow: str
    command: str
    folder: str
    topics: tuple[str, ...] = ()
    work: Callable[[], None] | None = field(default=None, compare=False)

    def as_json(self) -> Json:
        return {
            "application": self.application,
            "shadow": self.shadow,
            "command": self.command,
            "folder": self.folder,
            "topics": list(self.topics),
        }

    @classmethod
    def of_json(cls, body: Json) -> ShadowArguments:
        return cls(body["application"], body["shadow"], body["command"], body["folder"], tuple(body["topics"]))


def plan_shadow(services: Services, arguments: ShadowArguments, *, summary: str, notes: Sequence[str]) -> Plan[ShadowArguments]:
    """Return the plan to run a shadow; it asks for a word of its own, since the program really runs."""
    reason = f"with {counted(len(arguments.topics), 'topic')} and a group of its own; all of it is removed at the end"
    return Plan(
        operation=NAME,
        summary=summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(Item(arguments.shadow, "run", None, None, reason),),
        severity=Severity.SEVERE,
        confirm=word_of(arguments.application),
        arguments=arguments,
        warnings=(
            "the program really runs: what it does besides sending records through Kafka Streams it does again, such as calls of other"
            " services, producers and consumers of its own, and subjects in a schema registry",
        ),
        notes=tuple(notes),
    )


def word_of(application: str) -> str:
    """Return what has to be typed before a shadow runs."""
    return f"{application}-shadow"


@dataclass(frozen=True)
class Left:
    """What is there of a shadow: its topics, whether its group is, and whether its folder is."""

    topics: tuple[str, ...]
    is_group: bool
    is_folder: bool

    def __bool__(self) -> bool:
        return bool(self.topics or self.is_group or self.is_folder)

    def text(self, arguments: ShadowArguments) -> str:
        parts = [f"{counted(len(self.topics), 'topic')} ({names_text(self.topics, _NAMED, of='topics')})"] if self.topics else []
        parts += [f"the group {arguments.shadow}"] if self.is_group else []
        parts += [f"the folder {arguments.folder}"] if self.is_folder else []
        return ", ".join(parts)


def left_of(services: Services, arguments: ShadowArguments) -> Left:
    begin = f"{arguments.shadow}-"
    group = services.kafka.groups.describe_or_errors([arguments.shadow])[arguments.shadow]
    if isinstance(group, KopsError) and not isinstance(group, NotFound):
        raise group
    topics = tuple(sorted(name for name in services.kafka.topics.names() if name.startswith(begin)))
    return Left(topics, not isinstance(group, KopsError), Path(arguments.folder).exists())


def take_away(services: Services, arguments: ShadowArguments) -> Left:
    """Delete the topics of a shadow, its group and its folder; return what could not be deleted, and is still there."""
    shutil.rmtree(arguments.folder, ignore_errors=True)  # first: its process ends with it
    left = left_of(services, arguments)
    deadline = time.monotonic() + _GROUP_SECONDS
    while left.is_group:
        error = services.kafka.groups.delete([arguments.shadow])[arguments.shadow]
        if not isinstance(error, GroupActive) or time.monotonic() > deadline:
            break
        time.sleep(_LOOK_SECONDS)
    services.kafka.topics.delete(left.topics)
    return left_of(services, arguments) if left else left


def unfinished_shadows(journal: Journal, cluster_id: str, application: str) -> Iterator[Entry]:
    """Yield the entries of shadows of an application that were stopped in the middle, newest first."""
    for entry in journal.entries(lambda _damaged: None, mentioning=NAME):
        known = entry.plan.operation == NAME and entry.plan.cluster_id == cluster_id
        stopped = entry.status is not EntryStatus.OPEN or crashed(entry)
        if known and stopped and is_unfinished(entry) and ShadowArguments.of_json(entry.plan.arguments).application == application:
            yield entry


class RunShadow(FinalMutation[ShadowArguments]):
    """Runs a shadow, and takes it away."""

    name: ClassVar[str] = NAME
    arguments: ClassVar[type[ShadowArguments]] = ShadowArguments
    resume_command: ClassVar[str] = "kops journal finish"
    no_undo: ClassVar[str] = "a shadow leaves nothing to undo"
    instead: ClassVar[str | None] = "`kops journal finish` removes what is left of one that was stopped"

    def locks(self, plan: Plan[ShadowArguments]) -> Iterable[str]:
        """Lock the application: neither is it changed while its shadow runs, nor has it two of them."""
        return (plan.arguments.application,)

    def check(self, services: Services, plan: Plan[ShadowArguments]) -> None:
        """Refuse while the application runs."""
        if plan.arguments.work is not None:
            refuse_running_group(services, plan.arguments.application)

    def apply(self, services: Services, plan: Plan[ShadowArguments]) -> Iterator[ItemResult]:
        arguments = plan.arguments
        error: KopsError | None = None
        try:
            if arguments.work is not None:
                arguments.work()
        except KopsError as failed:
            error = failed
        finally:  # also when it is interrupted
            services.progress.step(f"taking {arguments.shadow} away")
            left = take_away(services, arguments)
        if left:
            yield ItemResult(arguments.shadow, Status.DONE)  # so that it is to be finished
        if error is not None:
            if left:
                hint = f"left: {left.text(arguments)}"
                error.hint = f"{error.hint}; {hint}" if error.hint else hint
            raise error
        if not left:
            yield ItemResult(arguments.shadow, Status.DONE)

    def verify(self, services: Services, plan: Plan[ShadowArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Look whether all of it is gone."""
        left = left_of(services, plan.arguments)
        if not left:
            return tuple(results)
        hint = "`kops journal finish` takes it away"
        error = VerificationFailed(f"of {plan.arguments.shadow} there is still {left.text(plan.arguments)}", hint=hint)
        return (ItemResult(plan.arguments.shadow, Status.FAILED, error=error.as_json()),)

    def resume(self, services: Services, plan: Plan[ShadowArguments]) -> Plan[ShadowArguments]:
        """Plan to remove what is left."""
        arguments = plan.arguments
        left = left_of(services, arguments)
        action = "delete" if left else "none"
        return Plan(
            operation=NAME,
            summary=f"remove {arguments.shadow}, a shadow of {arguments.application}",
            cluster_id=plan.cluster_id,
            context=services.connection.label,
            items=(Item(arguments.shadow, action, left.text(arguments) or None, None, "" if left else "nothing of it is left"),),
            arguments=arguments,
        )


def refuse_left(results: Sequence[ItemResult]) -> None:
    """Refuse to continue where a shadow could not be removed.

    :raises OperationFailed: naming what is left
    """
    for result in results:
        if result.status is not Status.DONE:
            error = result.error or {}
            raise OperationFailed(str(error.get("message", f"{result.target} was not removed")), hint=error.get("hint"))


SHADOW = RunShadow()
