"""Every error that kops raises on purpose, with its exit code.

An error says what is wrong and where (``message``), and what to do (``hint``). ``slug`` is stable and
machine-readable. The codes are the contract of the command line; nothing below ``cli.frame`` exits.

====  =====================================================
code  meaning
====  =====================================================
0     done, or nothing to do
1     failed, or found unhealthy or different
2     usage or configuration
3     cannot reach or authenticate
4     timed out, outcome unknown
5     refused before any change
6     partial: some items failed
7     inconclusive: neither different nor equal
130   interrupted (143: terminated)
====  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, TypeVar

_K = TypeVar("_K")
_T = TypeVar("_T")


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    REFUSED = 5
    PARTIAL = 6
    UNCLEAR = 7
    INTERRUPTED = 130
    TERMINATED = 143


class KopsError(Exception):
    """Base of all expected errors.

    :param message: what is wrong, and where, in one sentence without a final full stop
    :param hint: what to do about it, if kops knows
    :param details: facts for ``-o json``; JSON values only
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    slug: ClassVar[str] = "failed"

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"code": self.slug, "message": self.message, "exit_code": int(self.exit_code)}
        if self.hint:
            body["hint"] = self.hint
        if self.details:
            body["details"] = self.details
        return body


class CouldNotTell(KopsError):
    """A comparison was inconclusive: whether something differs is unknown."""

    exit_code = ExitCode.UNCLEAR
    slug = "could_not_tell"


class OperationFailed(KopsError):
    """The cluster or a service answered with a failure."""

    slug = "operation_failed"


class NotFound(KopsError):
    """A topic, group, context or journal entry that does not exist."""

    slug = "not_found"


class VerificationFailed(KopsError):
    """What was read back is not what was written."""

    slug = "verification_failed"


class UndecodableRecord(KopsError):
    """A record whose bytes are not in the expected format."""

    slug = "undecodable_record"


class UsageProblem(KopsError):
    """A value on the command line or in a file that cannot be used."""

    exit_code = ExitCode.USAGE
    slug = "usage"


class ConfigError(UsageProblem):
    """The configuration is wrong: which file, which key."""

    slug = "configuration"


class MissingRequirement(UsageProblem):
    """Something that kops needs is not on this machine (Java, jars, an extra)."""

    slug = "missing_requirement"


class Unreachable(KopsError):
    """No answer from any of the addresses."""

    exit_code = ExitCode.UNREACHABLE
    slug = "unreachable"


class BrokerDown(KopsError):
    """The broker that knows the answer does not accept connections; others do, and may answer for the rest."""

    exit_code = ExitCode.UNREACHABLE
    slug = "broker_down"


class AuthenticationFailed(Unreachable):
    """The server answered and rejected our credentials."""

    slug = "authentication_failed"


class AuthorizationFailed(KopsError):
    """The server knows who we are and denies the action."""

    slug = "authorization_failed"


class TimedOut(KopsError):
    """No answer in time; for a mutation the outcome is unknown."""

    exit_code = ExitCode.TIMED_OUT
    slug = "timed_out"


class Refused(KopsError):
    """Refused before any change."""

    exit_code = ExitCode.REFUSED
    slug = "refused"


class NothingToUndo(Refused):
    """All is as it was before what is to be undone."""

    slug = "nothing_to_undo"


class ApprovalRequired(Refused):
    """The plan was not approved."""

    slug = "approval_required"


class StateMoved(Refused):
    """The cluster is no longer what the plan was computed from (compare-and-set)."""

    slug = "state_moved"


class AlreadyExists(Refused):
    """What was to be created exists already."""

    slug = "already_exists"


class GroupActive(Refused):
    """The group has members, so its offsets and state must not be moved."""

    slug = "group_active"


class BrokersTooOld(Refused):
    """The brokers do not support a request: their Kafka is too old, or not Apache's."""

    slug = "brokers_too_old"


class SecurityDisabled(Refused):
    """The brokers have no authorizer, so they keep no ACLs."""

    slug = "security_disabled"


class ReadOnlyContext(Refused):
    """The context does not allow mutations."""

    slug = "read_only_context"


def answer_or_error(ask: Callable[[], _T]) -> _T | KopsError:
    """Return an answer of the cluster, or why it gave none.

    :raises Unreachable: when the cluster cannot be asked
    """
    try:
        return ask()
    except Unreachable:
        raise
    except KopsError as error:
        return error


def answers_of(names: Iterable[_K], ask: Callable[[_K], _T], problems: dict[_K, KopsError]) -> dict[_K, _T]:
    """Return the answer of each, so that the error of one does not hide the other answers.

    :param problems: receives why the others did not answer, by name
    :raises KopsError: when there is only one thing, and its answer is an error
    :raises Unreachable: when nothing can be asked
    """
    wanted = list(names)
    answers = {name: answer_or_error(partial(ask, name)) for name in wanted}
    return without_errors(answers, problems)


def without_errors(answers: Mapping[_K, _T | KopsError], problems: dict[_K, KopsError]) -> dict[_K, _T]:
    """Return the answers that are not errors; see :func:`answers_of`."""
    good: dict[_K, _T] = {}
    for name, answer in answers.items():
        if not isinstance(answer, KopsError):
            good[name] = answer
        elif len(answers) == 1:
            raise answer
        else:
            problems[name] = answer
    return good


class Terminated(BaseException):
    """SIGTERM arrived; like KeyboardInterrupt, not an Exception."""
