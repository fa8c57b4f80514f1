"""``kops schemas``: list, show, register, check, delete, config."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, F, mutation
from kops.cli.frame.session import Session
from kops.core.errors import KopsError
from kops.core.visible import indented
from kops.output.guard import for_data

if TYPE_CHECKING:
    from kops.core.schemas.models import Schema

TYPES = ("avro", "json-schema", "protobuf")
COLUMNS = ("subject", "version", "id", "type", "compatibility")
CONFIG = ("subject", "compatibility", "compatibility_own", "mode", "mode_own")
LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")


@click.group("schemas", cls=Group)
def group() -> None:
    """Schemas of the registry: list, show, register, check, delete, config.

    The registry is the context's registry_url; any with Confluent's API: Confluent, Apicurio, Karapace, Redpanda.
    """


def schema_options(command: F) -> F:
    options = (
        click.argument("subject", metavar="SUBJECT"),
        click.argument("file", metavar="FILE", type=click.Path()),
        click.option("--type", "kind", type=click.Choice(TYPES), help="Type of the schema. [default: from the file's name and content]"),
        click.option(
            "--reference",
            "references",
            metavar="NAME=SUBJECT:VERSION",
            multiple=True,
            help="A referenced schema: an Avro name, an imported .proto, a $ref; repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@group.command("list")
@click.argument("patterns", metavar="[SUBJECT|GLOB]...", nargs=-1)
@click.pass_obj
def list_subjects(session: Session, /, *, patterns: tuple[str, ...]) -> int:
    """List subjects with their latest version: all of them, or those that names and globs match."""
    from kops.operations.schemas.subjects import list_rows

    problems: dict[str, KopsError] = {}
    session.render(list_rows(session, patterns, problems), COLUMNS)
    return session.missing(problems)


@group.command("show")
@click.argument("subject", metavar="[SUBJECT]", required=False)
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="This version. [default: the latest]")
@click.option(
    "--id", "schema_id", type=click.IntRange(min=0), metavar="N", help="The schema with this id, the one that records begin with."
)
@click.option("--raw", is_flag=True, help="Only the schema's text, as stored in the registry.")
@click.pass_obj
def show(session: Session, /, *, subject: str | None, version: int | None, schema_id: int | None, raw: bool) -> None:
    """Show the schema of a subject or of an id, with the subjects that use it.

    \b
    Examples:
      kops schemas show orders-value
      kops schemas show --id 17
      kops schemas show orders-value --version 2 --raw > orders.avsc
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.schemas.subjects import pretty
    from kops.operations.schemas.subjects import show as look

    if (subject is None) == (schema_id is None) or (version is not None and subject is None):
        raise click.UsageError("pass either a subject (optionally with --version) or --id")
    body = look(session, subject, version=version, schema_id=schema_id)
    if raw:
        for_data(sys.stdout).write(body["schema"] + "\n")
    elif session.output_format != "table":
        session.render_object(body, name="subject" if subject else "id")
    else:
        shown = {key: value for key, value in body.items() if key not in ("schema", "compatibility_own") and value not in (None, [])}
        if shown.get("references"):
            shown["references"] = ", ".join(_reference(each) for each in body["references"])
        if shown.get("subjects"):
            shown["subjects"] = ", ".join(f"{each['subject']}:{each['version']}" for each in body["subjects"])
        session.render_object(shown)
        sys.stdout.write("\n" + pretty(body["type"], body["schema"]) + "\n")


@group.command("check")
@schema_options
@click.option("--against", metavar="VERSION", help="A version, latest, or all. [default: depends on the subject's compatibility level]")
@click.pass_obj
def check(session: Session, /, *, subject: str, file: str, kind: str | None, references: tuple[str, ...], against: str | None) -> int:
    """Check whether a schema is compatible with a subject, and name the fields that are not.

    Nothing is registered. Exit code 1: not compatible; 2: not a valid schema.
    """
    from kops.operations.schemas.subjects import check as look

    found = look(session, subject, read_schema(file, kind, references), against=against)
    rows = found.rows()
    if session.output_format == "table":
        session.render(rows, ["subject", "version", "level", "compatible"])
        for verdict in found.verdicts:
            for text in verdict.problems or verdict.messages:
                sys.stdout.write(f"  version {verdict.version.version}: {indented(text, '    ')}\n")
            if not (verdict.compatible or verdict.problems or verdict.messages):
                session.note(f"version {verdict.version.version}: the registry gives no reason")
    else:
        session.render(rows, ["subject", "version", "id", "level", "compatible", "problems", "messages"])
    if not rows:
        session.note(f"{subject} has no versions: any schema is compatible")
    return 0 if found.compatible else 1


@group.command("register")
@schema_options
@mutation
@click.pass_obj
def register(session: Session, /, *, subject: str, file: str, kind: str | None, references: tuple[str, ...], approval: Approval) -> int:
    """Register a schema as a new version of a subject, unless it is registered already.

    Incompatible schemas are refused before anything is registered, and the fields named.

    \b
    Examples:
      kops schemas register orders-value order.avsc
      kops schemas register orders-value order.proto --reference money.proto=money:1
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.schemas.register import plan_register

    return session.carry_out(plan_register(session, subject, read_schema(file, kind, references)), approval)


@group.command("delete")
@click.argument("subject", metavar="SUBJECT")
@click.option("--version", "versions", type=click.IntRange(min=1), metavar="N", multiple=True, help="Repeatable. [default: every version]")
@click.option(
    "--hard", is_flag=True, help="For good: records with the ids of these versions become unreadable, unless another subject has them."
)
@mutation
@click.pass_obj
def delete(session: Session, /, *, subject: str, versions: tuple[int, ...], hard: bool, approval: Approval) -> int:
    """Delete versions of a subject, or all of it; softly, so that records stay readable and undo can register them again.

    Versions that other schemas refer to are refused.
    """
    from kops.operations.schemas.delete import plan_delete

    return session.carry_out(plan_delete(session, subject, versions, hard=hard), approval)


@group.command("config")
@click.argument("subjects", metavar="[SUBJECT]...", nargs=-1)
@click.option("--global", "whole", is_flag=True, help="Change the registry's own, for every subject without one.")
@click.option("--compatibility", type=click.Choice(LEVELS, case_sensitive=False), help="Set the level.")
@click.option("--mode", type=click.Choice(MODES, case_sensitive=False), help="Set the mode.")
@click.option("--remove", type=click.Choice(["compatibility", "mode"]), multiple=True, help="Let the registry's count again.")
@mutation
@click.pass_obj
def config(
    session: Session,
    /,
    *,
    subjects: tuple[str, ...],
    whole: bool,
    compatibility: str | None,
    mode: str | None,
    remove: tuple[str, ...],
    approval: Approval,
) -> int:
    """Show or change the compatibility level and the mode: of the registry (--global), or of a subject.

    \b
    Examples:
      kops schemas config orders-value
      kops schemas config orders-value --compatibility FULL
      kops schemas config orders-value --remove compatibility
      kops schemas config --global --mode READONLY
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.schemas.config import config_rows, plan_config

    if not (whole or compatibility or mode or remove):
        session.render(config_rows(session, subjects), CONFIG)
        return 0
    if whole == (len(subjects) == 1) or len(subjects) > 1:
        raise click.UsageError("name one subject to change, or pass --global")
    subject = subjects[0] if subjects else None
    return session.carry_out(plan_config(session, subject, compatibility=compatibility, mode=mode, remove=remove), approval)


def read_schema(file: str, kind: str | None, references: tuple[str, ...]) -> Schema:
    """Read a schema from a file; ``-`` is stdin.

    :raises UsageProblem: when it cannot be read
    """
    from kops.config.files import read_text
    from kops.core.schemas.models import Schema, kind_of, parse_reference

    text = read_text(Path("/dev/stdin" if file == "-" else file), what="schema", hint="name a file, or - for stdin")
    return Schema(kind_of(file, text, kind), text, tuple(map(parse_reference, references)))


def _reference(body: dict[str, Any]) -> str:
    return f"{body['name']} ({body['subject']}:{body['version']})" if "subject" in body else str(body["name"])
