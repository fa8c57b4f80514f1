"""``kops acls``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.findings_view import fail_on_option, note_gaps, render_findings, write_findings
from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, F, mutation
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.core.acls.decide import Brokers, Decision
    from kops.core.acls.models import Filter
    from kops.core.acls.purposes import Purposes

COLUMNS = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
_resource_help = "topic:NAME, group:NAME, transactional-id:NAME, user:PRINCIPAL, delegation-token:ID or cluster"


@click.group(cls=Group)
def group() -> None:
    """See and change who may do what.

    A principal is User:alice, or alice for short. Every change is shown with who loses what before it is made.
    """


def filtered(command: F) -> F:
    """Add the filters of ACLs; the command gets them as ``filters``."""

    @click.argument("principals", metavar="[PRINCIPAL]...", nargs=-1)
    @click.option("--resource", metavar="RESOURCE", help=f"Only on this: {_resource_help}; without a name, all of that type.")
    @click.option("--operation", "operations", metavar="OPERATION", multiple=True, help="Only these, such as READ; repeatable.")
    @click.option("--host", metavar="ADDRESS", help="Only entries with this host; '*' for those of any host.")
    @click.option(
        "--pattern",
        type=click.Choice(["literal", "prefixed", "match"]),
        help="Only such entries; match: all that are about the named resource, by prefix and '*' too.",
    )
    @click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only these.")
    @wraps(command)
    def wrapped(
        *args: Any,
        principals: tuple[str, ...],
        resource: str | None,
        operations: tuple[str, ...],
        host: str | None,
        pattern: str | None,
        permission: str | None,
        **kwargs: Any,
    ) -> Any:
        from kops.core.acls.models import Filter, parse_operation, parse_principal, parse_resource

        kind, name = parse_resource(resource, named=False) if resource else (None, None)
        if pattern == "match" and name is None:
            raise click.UsageError("--pattern match needs --resource with a name", click.get_current_context())
        filters = Filter(
            tuple(map(parse_principal, principals)),
            kind,
            name,
            tuple(map(parse_operation, operations)),
            host,
            pattern,
            permission and permission.upper(),
        )
        return command(*args, filters=filters, **kwargs)

    return wrapped  # type: ignore[return-value]


def purposed(command: F) -> F:
    """Add the options that name purposes; the command gets them as ``purposes``."""

    @click.argument("principal", metavar="PRINCIPAL")
    @click.option(
        "--consume", metavar="TOPIC", multiple=True, help="Read this topic, by --group; a '*' at the end makes it a prefix; repeatable."
    )
    @click.option("--group", metavar="GROUP", help="The consumer group of --consume.")
    @click.option("--produce", metavar="TOPIC", multiple=True, help="Write to this topic, idempotent or not; repeatable.")
    @click.option("--transactional-id", metavar="ID", help="The transactional id of --produce.")
    @click.option("--streams", metavar="APP", multiple=True, help="Group, internal topics and transactions of a Kafka Streams application.")
    @click.option("--connect", metavar="CLUSTER", help="Run Connect workers with this group id; their connectors' topics are not among it.")
    @click.option("--connect-topics", metavar="PREFIX", help="What the workers' own topics begin with. [default: CLUSTER-]")
    @click.option("--kops", metavar="VERB", multiple=True, help="Run this verb of kops, such as 'offsets reset'; repeatable.")
    @click.option("--on-topic", metavar="TOPIC", multiple=True, help="The topics of --kops. [default: all]")
    @click.option("--on-group", metavar="GROUP", multiple=True, help="The groups of --kops. [default: all]")
    @click.option("--host", metavar="ADDRESS", default="*", help="Only from this address. [default: any]")
    @wraps(command)
    def wrapped(*args: Any, principal: str, host: str, **kwargs: Any) -> Any:
        from kops.core.acls.models import parse_principal
        from kops.core.acls.purposes import Purposes

        streams, kops = kwargs.pop("streams"), kwargs.pop("kops")
        purposes = Purposes(streams=streams, kops=kops, host=_address(host), **{key: kwargs.pop(key) for key in _PURPOSES})
        return command(*args, principal=parse_principal(principal), purposes=purposes, **kwargs)

    return wrapped  # type: ignore[return-value]


_PURPOSES = ("consume", "group", "produce", "transactional_id", "connect", "connect_topics", "on_topic", "on_group")


def _address(host: str) -> str:
    """Return a host as brokers compare it.

    :raises UsageProblem: for a name: such an entry never matches
    """
    from kops.core.acls.decide import java_address
    from kops.core.errors import UsageProblem

    address = host if host == "*" else java_address(host)
    if address is None:
        raise UsageProblem(f"{host!r} is not an address", hint="brokers compare the client's address, such as 10.0.0.1, never its name")
    return address


@group.command("list")
@filtered
@click.pass_obj
def list_(session: Session, /, *, filters: Filter) -> None:
    """List ACLs: all of them, or those of principals and filters."""
    from kops.operations.acls.look import list_acls, rows

    session.render(rows(list_acls(session, filters)), COLUMNS)


@group.command("create")
@click.argument("principal", metavar="PRINCIPAL")
@click.option("--operation", "operations", metavar="OPERATION", multiple=True, required=True, help="READ, WRITE, ..., ALL; repeatable.")
@click.option("--resource", "resources", metavar="RESOURCE", multiple=True, required=True, help=f"{_resource_help}; repeatable.")
@click.option("--host", "hosts", metavar="ADDRESS", multiple=True, help="Only from this address; repeatable. [default: any]")
@click.option(
    "--pattern",
    type=click.Choice(["literal", "prefixed"]),
    default="literal",
    show_default=True,
    help="prefixed: names that begin with NAME.",
)
@click.option("--deny", is_flag=True, help="Deny instead: stronger than any ALLOW.")
@mutation
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    principal: str,
    operations: tuple[str, ...],
    resources: tuple[str, ...],
    hosts: tuple[str, ...],
    pattern: str,
    deny: bool,
    approval: Approval,
) -> int:
    """Create single ACLs, one for each operation, resource and host.

    `kops acls grant` creates what a consumer, producer or application needs.
    """
    from kops.core.acls.models import ALLOW, DENY, Acl, parse_operation, parse_principal, parse_resource
    from kops.core.errors import UsageProblem
    from kops.operations.acls.change import plan_create

    places = [parse_resource(text) for text in resources]
    if pattern == "prefixed" and any(kind == "cluster" or name == "*" for kind, name in places):
        raise UsageProblem("neither the cluster nor '*' is a prefix", hint="leave out --pattern prefixed")
    acls = [
        Acl(parse_principal(principal), DENY if deny else ALLOW, parse_operation(operation), kind, str(name), pattern, host)
        for kind, name in places
        for operation in operations
        for host in (map(_address, hosts) if hosts else ["*"])
    ]
    return session.carry_out(plan_create(session, acls), approval)


@group.command("delete")
@filtered
@mutation
@click.pass_obj
def delete(session: Session, /, *, filters: Filter, approval: Approval) -> int:
    """Delete the ACLs of principals and filters; at least one is needed."""
    from kops.operations.acls.change import plan_delete

    return session.carry_out(plan_delete(session, [filters]), approval)


@group.command("grant")
@purposed
@mutation
@click.pass_obj
def grant(session: Session, /, *, principal: str, purposes: Purposes, approval: Approval) -> int:
    """Create the ACLs that a purpose needs.

    \b
      kops acls grant alice --consume orders --group billing
      kops acls grant shop --produce 'shop-*' --transactional-id shop-1
      kops acls grant oncall --kops 'groups lag' --kops 'offsets reset' --on-group 'billing-*'
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.acls.change import plan_grant

    return session.carry_out(plan_grant(session, principal, purposes), approval)


@group.command("revoke")
@purposed
@mutation
@click.pass_obj
def revoke(session: Session, /, *, principal: str, purposes: Purposes, approval: Approval) -> int:
    """Delete the ACLs that `kops acls grant` creates for a purpose.

    A group stays while the principal may read other topics, and a transactional id while it may write to other topics:
    the plan names what stays, and why. It removes ALLOWs only of this principal, as granted: wider ones stay.
    """
    from kops.operations.acls.change import plan_revoke

    return session.carry_out(plan_revoke(session, principal, purposes), approval)


@group.command("explain")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operation", metavar="OPERATION")
@click.argument("resource", metavar="RESOURCE")
@click.option("--host", metavar="ADDRESS", help="The client's address. [default: one that no entry names]")
@click.option(
    "--super-user", "super_users", metavar="PRINCIPAL", multiple=True, help="What super.users has, which brokers hide; repeatable."
)
@click.option(
    "--if-no-acl", "unlisted", type=click.Choice(["allow", "deny"]), help="What allow.everyone.if.no.acl.found says, which brokers hide."
)
@click.pass_obj
def explain(
    session: Session,
    /,
    *,
    principal: str,
    operation: str,
    resource: str,
    host: str | None,
    super_users: tuple[str, ...],
    unlisted: str | None,
) -> int:
    """Say whether something is allowed, and by which entry.

    RESOURCE is like topic:orders, group:billing or cluster. Exit codes: 0 allowed, 1 denied, 7 it depends on brokers'
    settings that they hide.
    """
    from kops.core.acls.models import Resource, checked_operation, parse_operation, parse_principal, parse_resource
    from kops.core.errors import ExitCode
    from kops.operations.acls.look import explain as look

    kind, name = parse_resource(resource)
    found = look(
        session,
        parse_principal(principal),
        checked_operation(parse_operation(operation), kind),
        Resource(kind, str(name)),
        host,
        super_users=tuple(map(parse_principal, super_users)),
        unlisted=None if unlisted is None else unlisted == "allow",
    )
    if session.output_format == "table":
        words = f"{found.principal} {found.operation} on {found.resource}{f' from {found.host}' if found.host else ''}"
        lines = [
            f"{words}: {_said(found.decision, found.brokers)}",
            *(f"from {one}: {_said(each, found.brokers)}" for one, each in found.by_host.items()),
        ]
        click.echo("\n".join(lines))
    else:
        session.render_object(found.as_json(), name="entry")
    return int({True: ExitCode.DONE, False: ExitCode.FAILED, None: ExitCode.UNCLEAR}[found.decision.allowed])


def _said(decision: Decision, brokers: Brokers) -> str:
    from kops.core.findings import names_text

    reasons: dict[str, Callable[[], str]] = {
        "super user": lambda: "it is a super user",
        "entry": lambda: str(decision.acl),
        "no match": lambda: "there are ACLs on this resource, and none allows it",
        "no entries": lambda: "there are no ACLs on this resource",
    }
    word = {True: "allowed", False: "denied", None: "not known"}[decision.allowed]
    reason = reasons[decision.rule]()
    if decision.allowed is None:
        unlisted = decision.rule == "no entries" and brokers.allow_unlisted is None
        hidden = "allow.everyone.if.no.acl.found" if unlisted else "super.users"
        reason = f"{reason}; denied unless super.users names it (--super-user)" if hidden == "super.users" else f"{reason} (--if-no-acl)"
        reason += f", and brokers do not show {hidden}"
    also = f"; also {names_text(decision.beside)}" if decision.beside else ""
    return f"{word}: {reason}{also}"


@group.command("audit")
@filtered
@fail_on_option
@click.pass_obj
def audit(session: Session, /, *, filters: Filter, fail_on: str) -> int:
    """Find ACLs that are too wide, that never match, or that name what does not exist.

    Exit code 1 for findings as bad as --fail-on says, 6 when not everything could be looked at.
    """
    from kops.core.errors import ExitCode
    from kops.core.findings import Severity, any_at_least, counted, for_connection
    from kops.operations.acls.look import audit_acls

    found, gaps, number = audit_acls(session, filters)
    findings = for_connection(found, session.cluster_words)
    if session.output_format == "table":
        write_findings(findings, f"{counted(number, 'ACL')}, {counted(len(findings), 'finding')}")
    elif session.output_format in ("json", "yaml"):
        session.render_object({"acls": number, "findings": [each.as_json() for each in findings]}, name="acls")
    else:
        render_findings(session, findings)
    partial = note_gaps(session, gaps)
    return int(ExitCode.FAILED) if any_at_least(findings, Severity[fail_on.upper()]) else partial


@group.command("export")
@filtered
@click.pass_obj
def export(session: Session, /, *, filters: Filter) -> None:
    """Write ACLs as YAML, one document per principal; -o json and -o csv write one row per entry."""
    from kops.operations.acls.look import export as documents
    from kops.operations.acls.look import list_acls, rows
    from kops.output.yaml_text import write_yaml_documents

    if session.output_format in ("table", "yaml"):
        write_yaml_documents(documents(session, filters), sys.stdout)
    else:
        session.render(rows(list_acls(session, filters)), COLUMNS)
