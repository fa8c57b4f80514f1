"""`kops cluster quorum`: the controllers, and adding and removing one (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from kops.core.cluster.features import KRAFT
from kops.core.cluster.models import Quorum, QuorumReplica
from kops.core.errors import KopsError, NotFound, Refused, UsageProblem, VerificationFailed, answer_or_error
from kops.core.findings import counted
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.operations.cluster.describe import quorum_row
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services

SILENT_MS = 10_000
"""A voter that has not fetched for this many milliseconds does not count towards a majority; running ones fetch several times a second."""
ADD, REMOVE = "add", "remove"


@dataclass(frozen=True)
class VoterChange(Arguments):
    """A voter to add or remove.

    :param listeners: name, host and port of each of its endpoints
    """

    action: str
    voter: int
    directory: str
    listeners: Sequence[tuple[str, str, int]]

    def as_json(self) -> Json:
        return {**asdict(self), "listeners": [list(one) for one in self.listeners]}

    @classmethod
    def of_json(cls, body: Json) -> VoterChange:
        listeners = tuple((str(name), str(host), int(port)) for name, host, port in body["listeners"])
        return cls(body["action"], body["voter"], body["directory"], listeners)


def show(services: Services) -> dict[str, Any]:
    """Return the voters and observers of the metadata log, and whether voters can be added and removed."""
    quorum = services.kafka.details.quorum()
    directories = {one.id: one.directory for one in (*quorum.voters, *quorum.observers)}
    body = quorum_row(quorum)
    for kind in ("voters", "observers"):
        body[kind] = [{**row, "directory_id": directories[row["id"]]} for row in body[kind]]
    return {**body, "dynamic": _is_dynamic(services)}


def parse_endpoint(text: str) -> tuple[str, str, int]:
    """Parse ``CONTROLLER://host:9093``.

    :raises UsageProblem: for anything else
    """
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if not (name and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageProblem(f"{text!r} is not the endpoint of a controller", hint="write it as CONTROLLER://host:9093")
    return name, host.strip("[]"), int(port)


def plan_add(services: Services, voter: int, endpoints: Sequence[str]) -> Plan[VoterChange]:
    """Plan to make a controller that observes the metadata log a voter.

    :param endpoints: as in its ``advertised.listeners``
    :raises NotFound: when no such controller observes
    :raises Refused: when the quorum is fixed, or it is a voter already
    """
    listeners = tuple(map(parse_endpoint, endpoints))
    _require_dynamic(services)
    quorum = services.kafka.details.quorum()
    if any(one.id == voter for one in quorum.voters):
        raise Refused(f"{voter} is a voter already")
    found = next((one for one in quorum.observers if one.id == voter), None)
    if found is None or found.directory is None:
        raise NotFound(
            f"no controller {voter} observes the metadata log",
            hint="start it first, formatted with --no-initial-controllers; `kops cluster quorum show` lists the observers",
        )
    warnings = [f"{voter} is a broker too: it can vote only if it is a controller as well"] if _is_broker(services, voter) else []
    return _plan(services, quorum, found, VoterChange(ADD, voter, found.directory, listeners), warnings)


def plan_remove(services: Services, voter: int) -> Plan[VoterChange]:
    """Plan to take the vote of a controller.

    :raises NotFound: when it is not a voter
    :raises Refused: when the quorum is fixed, and when too few of the others fetch
    """
    _require_dynamic(services)
    quorum = services.kafka.details.quorum()
    found = next((one for one in quorum.voters if one.id == voter), None)
    if found is None:
        raise NotFound(f"{voter} is not a voter", hint="`kops cluster quorum show` lists the voters")
    refuse_minority(quorum, voter)
    if found.directory is None:
        raise Refused(f"the cluster does not report the directory id of {voter}", hint="try again in a moment: it follows kraft.version=1")
    warnings = [f"{voter} is the leader: another one is elected"] if quorum.leader == voter else []
    if _is_broker(services, voter):
        warnings.append(f"{voter} is a broker too, and stays one")
    change = VoterChange(REMOVE, voter, found.directory, tuple(quorum.listeners.get(voter, ())))
    return _plan(services, quorum, found, change, warnings)


def refuse_minority(quorum: Quorum, voter: int) -> None:
    """Refuse to remove a voter where those that are left would have no majority that keeps up.

    :raises Refused: naming those that do not
    """
    left = [one for one in quorum.voters if one.id != voter]
    if not left:
        raise Refused(f"{voter} is the only voter: the cluster would have no controller", hint="add another one first")
    silent = [one.id for one in left if one.id != quorum.leader and _is_silent(quorum, one)]
    if 2 * (len(left) - len(silent)) <= len(left):
        names = ", ".join(map(str, silent))
        raise Refused(
            f"without {voter} there would be no majority: {names} of the other {len(left)} do not keep up", hint="bring these back first"
        )


def _is_silent(quorum: Quorum, one: QuorumReplica) -> bool:
    silence = quorum.silence(one)
    return silence is None or silence > SILENT_MS


class ChangeVoters(Mutation[VoterChange]):
    """Adds or removes one voter, and reads back who votes."""

    name: ClassVar[str] = "cluster.quorum"
    arguments: ClassVar[type[VoterChange]] = VoterChange

    def locks(self, plan: Plan[VoterChange]) -> Iterable[str]:  # noqa: ARG002 - the contract
        return ["voters"]

    def check(self, services: Services, plan: Plan[VoterChange]) -> None:
        quorum = services.kafka.details.quorum()
        compare_guard(plan, _guard(quorum), "the voters were")
        if plan.arguments.action == REMOVE:
            refuse_minority(quorum, plan.arguments.voter)

    def apply(self, services: Services, plan: Plan[VoterChange]) -> Iterator[ItemResult]:
        change, details = plan.arguments, services.kafka.details
        if change.action == ADD:
            error = answer_or_error(lambda: details.add_voter(plan.cluster_id, change.voter, change.directory, change.listeners))
        else:
            error = answer_or_error(lambda: details.remove_voter(plan.cluster_id, change.voter, change.directory))
        for item in plan.changes:
            yield failed(item, error) if isinstance(error, KopsError) else ItemResult(item.target, Status.DONE)

    def verify(self, services: Services, plan: Plan[VoterChange], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        def read() -> tuple[ItemResult, ...]:
            quorum = answer_or_error(services.kafka.details.quorum)
            return tuple(_read_back(result, plan.arguments, quorum) for result in results)

        return settled(read, services.kafka.heard_by_all)

    def can_be_undone(self, plan: Plan[VoterChange]) -> bool:
        return plan.arguments.action == ADD or bool(plan.arguments.listeners)

    def invert(self, services: Services, plan: Plan[VoterChange], results: Sequence[ItemResult]) -> Plan[VoterChange]:  # noqa: ARG002
        """Plan to remove the voter that was added, or to add the one that was removed, if it still observes.

        :raises Refused: where its endpoints are not known
        """
        change = plan.arguments
        if change.action == ADD:
            return plan_remove(services, change.voter)
        if not change.listeners:
            raise Refused("the endpoints of this controller are not known", hint="`kops cluster quorum add` takes them")
        return plan_add(services, change.voter, [f"{name}://{host}:{port}" for name, host, port in change.listeners])


CHANGE = ChangeVoters()


def _plan(services: Services, quorum: Quorum, found: QuorumReplica, change: VoterChange, warnings: Sequence[str]) -> Plan[VoterChange]:
    shown: dict[str, Any] = {
        "directory_id": change.directory,
        "endpoints": [f"{name}://{host}:{port}" for name, host, port in change.listeners],
    }
    shown["lag"] = quorum.lag(found)
    voter, count = {"vote": True, **shown}, len(quorum.voters)
    item = Item(
        f"controller {change.voter}", change.action, None if change.action == ADD else voter, voter if change.action == ADD else None
    )
    after = count + 1 if change.action == ADD else count - 1
    even = [] if after % 2 else [f"{after} voters survive no more failures than {after - 1}: an odd number is better"]
    return Plan(
        operation=CHANGE.name,
        summary=f"{change.action} controller {change.voter}: {counted(count, 'voter')} become{'s' if count == 1 else ''} {after}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(item,),
        severity=Severity.SEVERE,
        confirm=str(change.voter),
        guard=_guard(quorum),
        arguments=change,
        warnings=(*warnings, *even),
    )


def _guard(quorum: Quorum) -> dict[str, Any]:
    return {"voters": [[one.id, one.directory] for one in quorum.voters]}


def _is_broker(services: Services, voter: int) -> bool:
    return any(broker.id == voter for broker in services.kafka.cluster().brokers)


def _is_dynamic(services: Services) -> bool:
    return any(one.name == KRAFT and one.finalized for one in services.kafka.details.features())


def _require_dynamic(services: Services) -> None:
    services.kafka.details.require_voters()
    if not _is_dynamic(services):
        raise Refused(
            "the voters of this cluster are fixed by controller.quorum.voters",
            hint=f"`kops cluster features upgrade {KRAFT}=1` first, which controllers of Kafka 4.1 and newer take",
        )


def _read_back(result: ItemResult, change: VoterChange, quorum: Quorum | KopsError) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN) or isinstance(quorum, KopsError):
        return result
    voters: Mapping[int, str | None] = {one.id: one.directory for one in quorum.voters}
    if (voters.get(change.voter) == change.directory) == (change.action == ADD):
        return ItemResult(result.target, Status.DONE, value={"voters": sorted(voters)})
    if result.status is Status.UNKNOWN:
        return result
    wrong = f"{change.voter} is {'not yet' if change.action == ADD else 'still'} a voter"
    return ItemResult(result.target, Status.FAILED, error=VerificationFailed(wrong, hint="`kops cluster quorum show`").as_json())
