"""``kops users``: SCRAM users (KIP-554). No plan, journal or output holds a password, and the brokers return none."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from kops.config.connection import Secret
from kops.config.secrets import from_file, from_value
from kops.core.acls.models import Filter
from kops.core.errors import AlreadyExists, KopsError, NotFound, Refused, SecurityDisabled, UsageProblem, VerificationFailed
from kops.core.findings import counted
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status, not_done
from kops.core.selection import names_matching
from kops.gateways.machine.private_files import write_private
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services

NAME = "users.change"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LEAST, MOST = 4096, 16384
"""Iterations that brokers take (``ScramMechanism.minIterations``, ``ScramControlManager``)."""
FILE, MADE, GIVEN = "file", "made", "given"
_BYTES = 24


@dataclass(frozen=True)
class Password:
    """Where a password comes from when the plan is carried out.

    :param kind: FILE: read from ``path`` then; MADE by kops then, and written to ``path``; GIVEN: in this process only
    """

    kind: str
    path: str = ""
    secret: Secret | None = None

    def reveal(self) -> Secret:
        """Return the password, making it if it is to be made.

        :raises KopsError: when it cannot be read or written
        """
        if self.kind == FILE:
            found = from_file(Path(self.path))
        elif self.kind == MADE:
            found = from_value(f"file {self.path}", secrets.token_urlsafe(_BYTES))
            write_private(Path(self.path), found.reveal() + "\n")
        elif self.secret is not None:
            found = self.secret
        else:
            raise Refused(
                "the password of this plan was typed or printed by a command, and a saved plan holds none",
                hint="make the plan again with --password-file or --generate",
            )
        found.reveal()
        return found


@dataclass(frozen=True)
class UserChange(Arguments):
    """The arguments of ``users.change``.

    :param wanted: iterations by mechanism; None deletes
    """

    user: str
    wanted: Mapping[str, int | None]
    password: Password | None = None

    def as_json(self) -> Json:
        source = None if self.password is None else {"kind": self.password.kind, "path": self.password.path}
        return {"user": self.user, "wanted": dict(self.wanted), "password": source}

    @classmethod
    def of_json(cls, body: Json) -> UserChange:
        source = body["password"]
        return cls(body["user"], dict(body["wanted"]), None if source is None else Password(source["kind"], source["path"]))


def user_rows(services: Services, patterns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per user and mechanism.

    :raises NotFound: for a plain name that does not exist
    """
    found = services.kafka.principals.credentials()
    names = names_matching(patterns, sorted(found), what="user")
    return [{"user": name, "mechanism": each, "iterations": found[name][each]} for name in names for each in sorted(found[name])]


def plan_create(services: Services, user: str, mechanisms: Sequence[str], iterations: int, password: Password) -> Plan[UserChange]:
    """Plan to give a user a password that it does not have yet.

    :raises AlreadyExists: when it has one for a mechanism
    """
    now = _credentials(services, user)
    if there := [each for each in mechanisms if each in now]:
        raise AlreadyExists(f"user {user} has a {there[0]} password already", hint=f"`kops users alter {user}` sets another one")
    _check_made(password)
    notes = _rights(services, user, "has", none="has no ACLs: where an authorizer allows nothing without one, it may do nothing")
    others = [f"{each} keeps its own password" for each in now]
    return _plan(services, user, now, dict.fromkeys(mechanisms, iterations), password, notes=(*notes, *others))


def plan_alter(services: Services, user: str, mechanisms: Sequence[str], iterations: int | None, password: Password) -> Plan[UserChange]:
    """Plan to replace the password of a user.

    :param mechanisms: empty: all that it has
    :param iterations: None: as many as before
    :raises NotFound: when it has none
    """
    now = _existing(services, user, mechanisms)
    _check_made(password)
    chosen = mechanisms or tuple(now)
    warnings = [
        "the old password cannot be read, so it cannot be restored: clients that have it can no longer log in; those that are connected"
        " stay until they connect again",
        *(f"{each} keeps its old password: a client can still log in with that" for each in now if each not in chosen),
    ]
    if _is_own(services, user):
        warnings.append(f"kops itself logs in as {user}: give this context the new password, or the next command cannot connect")
    wanted = {each: iterations or now[each] for each in chosen}
    return _plan(services, user, now, wanted, password, warnings=warnings, notes=_rights(services, user, "keeps"))


def plan_delete(services: Services, user: str, mechanisms: Sequence[str] = ()) -> Plan[UserChange]:
    """Plan to delete the passwords of a user.

    :param mechanisms: empty: all that it has
    :raises NotFound: when it has none
    :raises Refused: for the one that kops is logged in with
    """
    now = _existing(services, user, mechanisms)
    chosen = mechanisms or tuple(now)
    if _is_own(services, user) and services.connection.sasl_mechanism in chosen:
        raise Refused(
            f"kops itself is logged in as {user}, with {services.connection.sasl_mechanism}", hint="use a context with another user"
        )
    warnings = [
        "a password cannot be read, so it cannot be restored: `kops users create` sets a new one",
        *(f"{each} keeps its password: a client can still log in with that" for each in now if each not in chosen),
    ]
    notes = [*_rights(services, user, "leaves"), "connections that are open stay until they end or log in again"]
    return _plan(services, user, now, dict.fromkeys(chosen), None, warnings=warnings, notes=notes)


def _credentials(services: Services, user: str) -> dict[str, int]:
    if not user:
        raise UsageProblem("the name of the user is empty")
    return services.kafka.principals.credentials_of(user)


def _existing(services: Services, user: str, mechanisms: Sequence[str]) -> dict[str, int]:
    now = _credentials(services, user)
    missing = [each for each in mechanisms if each not in now]
    if not now or missing:
        what = f"{missing[0]} password" if now else "SCRAM password"
        raise NotFound(f"user {user} has no {what}", hint="`kops users list` shows who has which")
    return now


def _check_made(password: Password) -> None:
    if password.kind == MADE and Path(password.path).exists():
        raise UsageProblem(f"{password.path} exists already", hint="name a new file for the password")


def _is_own(services: Services, user: str) -> bool:
    connection = services.connection
    return connection.username == user and (connection.sasl_mechanism or "").startswith("SCRAM")


def _rights(services: Services, user: str, verb: str, *, none: str = "") -> list[str]:
    """Say how many ACLs name a user."""
    try:
        count = len(services.kafka.acls.matching(Filter(principals=(f"User:{user}",))))
    except SecurityDisabled:
        count = 0
    except KopsError as error:
        return [f"whether ACLs name User:{user} is not known: {error.message}"]
    if count:
        return [f"User:{user} {verb} {counted(count, 'ACL')}"]
    return [f"User:{user} {none}"] if none and services.connection.sasl_mechanism else []


def _plan(
    services: Services,
    user: str,
    now: Mapping[str, int],
    wanted: Mapping[str, int | None],
    password: Password | None,
    *,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Plan[UserChange]:
    action = {True: "delete", False: "alter" if set(wanted) & set(now) else "create"}[password is None]
    items = tuple(
        Item(_target(user, each), action, _shown(now.get(each)), _shown(count), "" if count is None else "the password is not shown")
        for each, count in wanted.items()
    )
    return Plan(
        operation=NAME,
        summary=f"{action} user {user}: {', '.join(wanted)}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        severity=Severity.MODERATE if action == "create" else Severity.SEVERE,
        confirm="" if action == "create" else user,
        guard=dict(now),
        arguments=UserChange(user, wanted, password),
        warnings=tuple(warnings),
        notes=tuple(notes),
    )


def _target(user: str, mechanism: str) -> str:
    return f"{user} {mechanism}"


def _shown(iterations: int | None) -> Json:
    return None if iterations is None else {"iterations": iterations}


class ChangeUser(Mutation[UserChange]):
    """Sets or deletes the passwords of one user."""

    name: ClassVar[str] = NAME
    arguments: ClassVar[type[UserChange]] = UserChange

    def can_be_undone(self, plan: Plan[UserChange]) -> bool:
        return all(item.action == "create" for item in plan.changes)

    def locks(self, plan: Plan[UserChange]) -> Iterable[str]:
        return [f"user {plan.arguments.user}"]

    def check(self, services: Services, plan: Plan[UserChange]) -> None:
        """Refuse if the user has other credentials than the plan was made from; that a password was replaced cannot be seen."""
        compare_guard(plan, _credentials(services, plan.arguments.user), f"user {plan.arguments.user}")

    def apply(self, services: Services, plan: Plan[UserChange]) -> Iterator[ItemResult]:
        given, principals = plan.arguments, services.kafka.principals
        password = given.password.reveal() if given.password else None
        unused = given.password is not None and given.password.kind == MADE
        for item, (mechanism, iterations) in zip(plan.changes, given.wanted.items(), strict=True):
            try:
                if iterations is None or password is None:
                    principals.delete_credential(given.user, mechanism)
                else:
                    principals.set_password(given.user, mechanism, iterations, password)
            except KopsError as error:
                result = failed(item, error)
            else:
                result = ItemResult(item.target, Status.DONE)
            unused = unused and result.status is Status.FAILED
            yield result
        if unused and given.password is not None:
            Path(given.password.path).unlink(missing_ok=True)

    def verify(self, services: Services, plan: Plan[UserChange], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        user = plan.arguments.user
        wanted = {_target(user, each): count for each, count in plan.arguments.wanted.items()}

        def read() -> tuple[ItemResult, ...]:
            now = {_target(user, each): count for each, count in _credentials(services, user).items()}
            return tuple(_read_back(one, now.get(one.target), wanted[one.target]) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def messages(self, services: Services, plan: Plan[UserChange], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        password = plan.arguments.password
        if password is None or not any(one.status is Status.DONE for one in results):
            return ()
        where = (f"the password is in {password.path}, which only you can read",) if password.kind == MADE else ()
        return (*where, "iterations were read back; a login with the password was not tried")

    def invert(self, services: Services, plan: Plan[UserChange], results: Sequence[ItemResult]) -> Plan[UserChange]:
        """Plan to delete the passwords that were created.

        :raises Refused: for those that were replaced or deleted
        """
        user = plan.arguments.user
        if not self.can_be_undone(plan):
            raise Refused(
                f"the old password of {user} is not known: brokers keep none that can be read",
                hint=f"set a new one: `kops users create {user}`, or `kops users alter {user}` where it has one",
            )
        untouched, now = not_done(results), _credentials(services, user)
        made = [each for each in plan.arguments.wanted if _target(user, each) not in untouched and each in now]
        if not made:
            raise Refused(f"user {user} has no password that this change created")
        return plan_delete(services, user, made)

    def resume(self, services: Services, plan: Plan[UserChange]) -> Plan[UserChange]:
        """Plan what is left: the passwords that are not there, or not gone; all of those that are replaced, since that cannot be seen."""
        user, given, before = plan.arguments.user, plan.arguments, plan.guard
        now = _credentials(services, user)
        left = {each: count for each, count in given.wanted.items() if (each in now) == (count is None) or (count and each in before)}
        password = given.password
        if password is not None and password.kind == MADE and Path(password.path).exists():
            password = Password(FILE, password.path)
        resumed = _plan(services, user, now, left or given.wanted, password, warnings=plan.warnings)
        if left:
            return resumed
        return replace(resumed, items=tuple(Item(item.target, "none", reason="done already") for item in resumed.items))


CHANGE_USER = ChangeUser()


def _read_back(result: ItemResult, now: int | None, wanted: int | None) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    if now == wanted:
        # For a request whose answer was lost, equal iterations prove a new or deleted credential; what was replaced cannot be seen.
        return ItemResult(result.target, result.status if result.status is Status.UNKNOWN and now else Status.DONE, value=_shown(now))
    if result.status is Status.UNKNOWN:
        return result
    error = VerificationFailed(f"{result.target} has {now or 'no'} iterations, not {wanted or 'none'}")
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=_shown(now))
