"""``kops tokens``: delegation tokens (KIP-48). No plan, journal or output holds an HMAC: it is written to a private file, once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from kops.core.durations import duration_text
from kops.core.errors import KopsError, NotFound, Refused, StateMoved, UsageProblem, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.core.times import time_text, to_milliseconds
from kops.core.tokens import Token
from kops.gateways.machine.private_files import write_private
from kops.operations.acls.look import own_principal
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services

CREATE, RENEW, EXPIRE = "tokens.create", "renew", "expire"
_BROKERS_CHOICE = REMOVED = -1
_SEEN = "`kops tokens list` shows those that this login may see"


def token_rows(services: Services, owners: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per token that this login may see.

    :param owners: principals; empty: all
    """
    now = to_milliseconds(services.now())
    return [token.as_json(now) for token in services.kafka.tokens.listed() if not owners or token.owner in owners]


@dataclass(frozen=True)
class NewToken(Arguments):
    """The arguments of ``tokens.create``.

    :param owner: None: the principal of the login
    :param life: how long it can be renewed, in milliseconds; -1: as the brokers' settings say
    :param path: of the file that gets the HMAC
    """

    owner: str | None
    renewers: tuple[str, ...]
    life: int
    path: str

    def as_json(self) -> Json:
        return {**asdict(self), "renewers": list(self.renewers)}

    @classmethod
    def of_json(cls, body: Json) -> NewToken:
        return cls(body["owner"], tuple(body["renewers"]), body["life"], body["path"])


@dataclass(frozen=True)
class Expiry(Arguments):
    """The arguments of ``tokens.expiry``.

    :param action: RENEW or EXPIRE: the request, of which brokers limit the first to their default period
    :param until: milliseconds since the epoch; -1: to renew, what the brokers choose; to expire, the token is removed
    """

    token: str
    action: str
    until: int

    def as_json(self) -> Json:
        return asdict(self)

    @classmethod
    def of_json(cls, body: Json) -> Expiry:
        return cls(**body)


def plan_create(services: Services, owner: str | None, renewers: Sequence[str], life: int | None, path: str) -> Plan[NewToken]:
    """Plan to create a token, and to write its HMAC to a new file.

    :raises UsageProblem: when the file exists
    """
    if Path(path).exists():
        raise UsageProblem(f"{path} exists already", hint="name a new file for the HMAC")
    if life is not None and life <= 0:
        raise UsageProblem("a token has to last", hint="pass --max-life such as 7d")
    own = own_principal(services.connection)
    ours = not _is_foreign(own, owner or own or "", renewers)
    if not ours:
        warning = f"only {owner} and renewers can renew or remove it, so it cannot be undone: --renewer {own} would make {own} one"
    after = {"renewers": list(renewers), "ends": f"after {duration_text(life)}" if life else "as delegation.token.max.lifetime.ms says"}
    return Plan(
        operation=CREATE,
        summary=f"create a delegation token of {owner or 'the principal of this login'}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(Item(f"token of {owner or 'this login'}", "create", None, after, "the HMAC is not shown"),),
        guard={"ours": ours},
        warnings=() if ours else (warning,),
        arguments=NewToken(owner, tuple(renewers), life or _BROKERS_CHOICE, path),
        notes=(
            "whoever has the file can do all that its owner may, until the token expires",
            "it works for delegation.token.expiry.time.ms of the brokers, and longer if it is renewed",
        ),
    )


def plan_renew(services: Services, token_id: str, period: int | None) -> Plan[Expiry]:
    """Plan to renew a token.

    :param period: from now on, in milliseconds; None: as the brokers' settings say
    :raises NotFound: when this login may see no such token
    :raises Refused: when it may not renew it, or it has expired
    """
    token, now = _token(services, token_id), to_milliseconds(services.now())
    if token.expires <= now:
        raise Refused(f"token {token_id} has expired, so it cannot be renewed", hint="`kops tokens create` makes another one")
    until = _BROKERS_CHOICE if period is None else min(now + period, token.ends)
    return _plan(services, token, RENEW, until)


def plan_expire(services: Services, token_id: str, period: int | None = None) -> Plan[Expiry]:
    """Plan to let a token expire.

    :param period: from now on, in milliseconds; None: it is removed at once
    :raises NotFound: when this login may see no such token
    :raises Refused: when it may not end it
    """
    token = _token(services, token_id)
    return _plan(services, token, EXPIRE, REMOVED if period is None else min(to_milliseconds(services.now()) + period, token.ends))


def _token(services: Services, token_id: str) -> Token:
    found = _by_id(services).get(token_id)
    if found is None:
        raise NotFound(f"there is no token {token_id}, or this login may not see it", hint=_SEEN)
    if _is_foreign(own_principal(services.connection), found.owner, found.renewers):
        who = " and ".join((found.owner, *found.renewers))
        raise Refused(f"only {who} can renew token {token_id} or let it expire", hint="use a context with that login")
    return found


def _is_foreign(own: str | None, owner: str, renewers: Sequence[str]) -> bool:
    """Whether brokers do not let a login change a token (``DelegationTokenControlManager``); False if its principal is not known."""
    return own is not None and own not in (owner, *renewers)


def _by_id(services: Services) -> dict[str, Token]:
    return {token.id: token for token in services.kafka.tokens.listed()}


def _plan(services: Services, token: Token, action: str, until: int) -> Plan[Expiry]:
    removed = (action, until) == (EXPIRE, REMOVED)
    chosen = f"as delegation.token.expiry.time.ms says, at most {time_text(token.ends)}"
    after = None if removed else {"expires": chosen if until == _BROKERS_CHOICE else time_text(until)}
    earlier = removed or 0 < until < token.expires
    clients = "clients that have only this token cannot log in after that; those that are logged in stay until they log in again"
    return Plan(
        operation=ChangeExpiry.name,
        summary=f"{'remove' if removed else action} token {token.id} of {token.owner}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(Item(token.id, "remove" if removed else action, {"expires": time_text(token.expires)}, after),),
        severity=Severity.SEVERE if removed else Severity.MODERATE,
        confirm=token.id if removed else "",
        guard={"expires": token.expires},
        arguments=Expiry(token.id, action, until),
        warnings=(clients,) if earlier else (),
        notes=("brokers give no more than delegation.token.expiry.time.ms",) if action == RENEW and until > 0 else (),
    )


class CreateToken(Mutation[NewToken]):
    """Creates a token."""

    name: ClassVar[str] = CREATE
    arguments: ClassVar[type[NewToken]] = NewToken

    def check(self, services: Services, plan: Plan[NewToken]) -> None:  # noqa: ARG002 - the contract
        """Refuse if the file exists; tokens that are there stand in nothing's way."""
        if Path(plan.arguments.path).exists():
            raise StateMoved(f"{plan.arguments.path} exists", hint="name a new file for the HMAC")

    def apply(self, services: Services, plan: Plan[NewToken]) -> Iterator[ItemResult]:
        """Create the file, then the token: a token whose HMAC cannot be written is of no use."""
        (item,), given, path = plan.changes, plan.arguments, Path(plan.arguments.path)
        write_private(path, "")
        try:
            token, hmac = services.kafka.tokens.create(given.owner, given.renewers, given.life)
        except KopsError as error:
            path.unlink(missing_ok=True)
            yield failed(item, error)
            return
        path.write_text(hmac.reveal() + "\n", encoding="utf-8")
        yield ItemResult(item.target, Status.DONE, value=token.as_json(token.issued))

    def verify(self, services: Services, plan: Plan[NewToken], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        given = plan.arguments

        def read() -> tuple[ItemResult, ...]:
            (result,) = results
            if result.status is not Status.DONE:
                return (result,)
            found = _by_id(services).get(result.value["token"])
            if found and set(found.renewers) == set(given.renewers) and given.owner in (None, found.owner):
                return (result,)
            error = VerificationFailed(f"token {result.value['token']} is not among the tokens that this login may see", hint=_SEEN)
            return (ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value),)

        return settled(read, services.kafka.heard_by_all)

    def invert(self, services: Services, plan: Plan[NewToken], results: Sequence[ItemResult]) -> Plan[Expiry]:  # noqa: ARG002 - the contract
        """Plan to remove the token.

        :raises Refused: when it is not known which one it is
        """
        made = next((result.value["token"] for result in results if result.value), None)
        if made is None:
            raise _unknown()
        return plan_expire(services, made)

    def resume(self, services: Services, plan: Plan[NewToken]) -> Plan[Any]:  # noqa: ARG002 - the contract
        """Refuse: a token whose HMAC was not written is of no use, and another one is as good.

        :raises Refused: always
        """
        raise _unknown()

    def can_be_undone(self, plan: Plan[NewToken]) -> bool:
        return bool(plan.guard["ours"])

    def can_be_finished(self, plan: Plan[NewToken]) -> bool:  # noqa: ARG002 - the contract
        return False

    def messages(self, services: Services, plan: Plan[NewToken], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        (result,) = results
        if result.status is not Status.DONE:
            return ()
        return (
            f"its HMAC is in {plan.arguments.path}, which only you can read",
            f"clients log in by SCRAM with the user name {result.value['token']}, the HMAC as password, and tokenauth=true",
        )


class ChangeExpiry(Mutation[Expiry]):
    """Changes when a token expires, or removes it."""

    name: ClassVar[str] = "tokens.expiry"
    arguments: ClassVar[type[Expiry]] = Expiry

    def locks(self, plan: Plan[Expiry]) -> Iterable[str]:
        return [f"token {plan.arguments.token}"]

    def check(self, services: Services, plan: Plan[Expiry]) -> None:
        """Refuse if the token is gone, or expires at another time than the plan was made from."""
        found = _by_id(services).get(plan.arguments.token)
        if found is None or found.expires != plan.guard["expires"]:
            now = f"now expires at {time_text(found.expires)}" if found else "is gone"
            raise StateMoved(f"token {plan.arguments.token} {now}", hint="run the command again to plan from what is there now")

    def apply(self, services: Services, plan: Plan[Expiry]) -> Iterator[ItemResult]:
        (item,), given = plan.changes, plan.arguments
        period = given.until if given.until < 0 else max(0, given.until - to_milliseconds(services.now()))
        try:
            change = services.kafka.tokens.renew if given.action == RENEW else services.kafka.tokens.expire
            expires = change(given.token, period)
        except KopsError as error:
            yield failed(item, error)
            return
        yield ItemResult(item.target, Status.DONE, value=None if self._removes(plan) else {"expires_at": time_text(expires)})

    def verify(self, services: Services, plan: Plan[Expiry], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        def read() -> tuple[ItemResult, ...]:
            found = _by_id(services).get(plan.arguments.token)
            return tuple(self._read_back(plan, result, found) for result in results)

        return settled(read, services.kafka.heard_by_all)

    def _read_back(self, plan: Plan[Expiry], result: ItemResult, found: Token | None) -> ItemResult:
        if result.status not in (Status.DONE, Status.UNKNOWN):
            return result
        now = {"expires_at": time_text(found.expires)} if found else None
        if self._removes(plan):
            as_planned = found is None
        else:
            known = result.value or {"expires_at": time_text(plan.arguments.until)}
            as_planned = now == known
        if as_planned:
            return ItemResult(result.target, Status.DONE, value=now)
        if result.status is Status.UNKNOWN:
            return result
        error = VerificationFailed(f"token {result.target} {'expires at ' + now['expires_at'] if now else 'is gone'}", hint=_SEEN)
        return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=now)

    def can_be_undone(self, plan: Plan[Expiry]) -> bool:
        return not self._removes(plan)

    def invert(self, services: Services, plan: Plan[Expiry], results: Sequence[ItemResult]) -> Plan[Expiry]:
        """Plan to let it expire when it did before.

        :raises Refused: when it was removed, or that time has passed
        """
        before = plan.guard["expires"]
        if self._removes(plan):
            raise Refused("a token that was removed cannot be restored", hint="`kops tokens create` makes another one, with another HMAC")
        if before <= to_milliseconds(services.now()):
            raise Refused(f"it expired at {time_text(before)} before, which has passed", hint="`kops tokens expire` removes it")
        token = _token(services, plan.arguments.token)
        ours = next((result.value for result in results if result.value), None)
        strayed = ours is not None and ours["expires_at"] != time_text(token.expires)
        undo = _plan(services, token, EXPIRE, before)
        lost = (f"its expiry was changed since: {time_text(token.expires)}",) if strayed else ()
        return replace(undo, losses=lost)

    def resume(self, services: Services, plan: Plan[Expiry]) -> Plan[Expiry]:
        """Plan what is left."""
        found = _by_id(services).get(plan.arguments.token)
        if found is None or found.expires != plan.guard["expires"]:
            return replace(plan, items=tuple(Item(item.target, "none", reason="done already") for item in plan.items))
        return _plan(services, found, plan.arguments.action, plan.arguments.until)

    @staticmethod
    def _removes(plan: Plan[Expiry]) -> bool:
        return (plan.arguments.action, plan.arguments.until) == (EXPIRE, REMOVED)


def _unknown() -> Refused:
    return Refused("it is not known whether a token was created", hint="`kops tokens list` shows it, and `kops tokens expire` removes it")


CREATE_TOKEN, CHANGE_EXPIRY = CreateToken(), ChangeExpiry()
