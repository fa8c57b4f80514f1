"""``kops cluster``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import click

from kops.cli.brokers.look import list_ as list_of_brokers
from kops.cli.brokers.look import with_address
from kops.cli.frame.findings_view import cluster_words, fail_on_option, note_gaps, render_findings, write_findings
from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.plan_view import plan_text
from kops.cli.frame.session import Session
from kops.core.errors import ExitCode
from kops.core.findings import counted
from kops.output.table import Column

VOTER_COLUMNS = ("id", "role", "endpoint", "log_end_offset", "lag", "lag_ms")
FEATURE_COLUMNS = ("feature", "level", "supported")
BROKER_COLUMNS = ("id", "address", "rack", Column("in_service", "UP"), "kafka_version")


EXPORT_COLUMNS = ("kind", "documents", "file")
DIFF_COLUMNS = ("target", "action", "before", "after", "reason")
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
prune_option = click.option("--prune", is_flag=True, help="Remove what the folder's manifest owns and no file declares.")


@click.group(cls=Group)
def group() -> None:
    """Look at the cluster as a whole (describe, health), or keep it as files (export, diff, apply)."""


@group.command("describe")
@click.pass_obj
def describe(session: Session, /) -> int:
    """Show the controllers, features, brokers and versions.

    Kafka has no request for a broker's release. KAFKA VERSION is derived from the features and requests that a broker supports; "or newer"
    means that later releases support the same.
    """
    from kops.operations.cluster.describe import describe as find
    from kops.operations.cluster.health import gap_rows

    body, gaps = find(session)
    if session.output_format in ("json", "yaml"):
        session.render_object({**body, "not_known": gap_rows(gaps)}, name="cluster_id")
    elif session.output_format == "table":
        _show_description(session, body)
    else:
        session.render(map(_described, body["brokers"]), BROKER_COLUMNS)
    return note_gaps(session, gaps)


@group.command("health")
@fail_on_option
@click.pass_obj
def health(session: Session, /, *, fail_on: str) -> int:
    """Find what is unhealthy; the exit code is 1 if anything is, so it can serve as a probe.

    \b
    critical  partitions without a leader or below min.insync.replicas, log
              directories that are offline, no active controller
    warning   under-replicated partitions, those at min.insync.replicas among
              them, brokers and controllers that are missing, full disks
    note      leaders that are not the preferred ones, unclean leader election,
              min.insync.replicas and replication factors that risk records

    Exit codes: 0 healthy, 1 unhealthy, 3 no broker answers, 6 healthy but not everything could be checked.
    """  # noqa: D301 - click reads \b as "keep these lines"
    from kops.core.findings import Severity
    from kops.operations.cluster.health import as_json, examine, headline

    least = Severity[fail_on.upper()]
    found = examine(session, cluster_words(session))
    if session.output_format in ("json", "yaml"):
        session.render_object(as_json(found, least), name="cluster_id")
    elif session.output_format == "table":
        write_findings(found.findings, headline(found, least))
    else:
        render_findings(session, found.findings)
    partial = note_gaps(session, found.gaps)
    return partial if found.healthy(least) else int(ExitCode.FAILED)


@group.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace files that are there.")
@click.pass_obj
def export(session: Session, /, *, folder: Path, replace: bool) -> int:
    """Write what the cluster has as YAML, a file a kind, for `kops cluster diff` and `apply`.

    Only this user can read the files. Secrets are not written. manifest.yaml says whose the folder is, and what --prune may
    remove; it stays as it is.
    """
    from kops.operations.cluster.folder.export import export as write

    found = write(session, folder, replace=replace)
    session.render([one.row() for one in found], EXPORT_COLUMNS)
    session.note(*(note for one in found for note in one.notes))
    return int(ExitCode.PARTIAL if any(one.failed for one in found) else ExitCode.DONE)


@group.command("diff")
@folder_argument
@prune_option
@click.pass_obj
def diff(session: Session, /, *, folder: Path, prune: bool) -> int:
    """Show how the cluster differs from a folder: what `kops cluster apply` would do.

    Exit code 1 when anything differs.
    """
    from kops.operations.cluster.folder.apply import plan_folder

    plan = plan_folder(session, folder, prune=prune)
    rows = [item.as_json() for item in plan.changes]
    if session.output_format != "table":
        session.render(rows, DIFF_COLUMNS)
    elif rows:
        click.echo(plan_text(replaced(plan, items=plan.changes), terminal=sys.stdout.isatty()))
    session.note(*(f"warning: {warning}" for warning in plan.warnings), *plan.notes)
    session.note(f"{counted(len(rows), 'difference')}" if rows else "nothing differs")
    return int(ExitCode.FAILED if rows else ExitCode.DONE)


@group.command("apply")
@folder_argument
@prune_option
@mutation
@click.pass_obj
def apply(session: Session, /, *, folder: Path, prune: bool, approval: Approval) -> int:
    """Bring the cluster in line with a folder, in one plan.

    What others need comes first. A part that fails stops the rest: `kops journal finish` continues it. Nothing is removed
    without --prune.
    """
    from kops.operations.cluster.folder.apply import plan_folder

    return session.carry_out(plan_folder(session, folder, prune=prune), approval)


def _show_description(session: Session, body: Mapping[str, Any]) -> None:
    controller, quorum = body["controller"], body["quorum"]
    where = f"{controller['id']} ({controller['endpoint']})" if controller and controller["endpoint"] else (controller or {}).get("id")
    metadata = f", metadata version {body['metadata_version']}" if body["metadata_version"] else ""
    click.echo(f"cluster {body['cluster_id']}, Kafka {_release(body) or 'of unknown version'}{metadata}")
    click.echo(f"controller {'none' if where is None else where}", nl=quorum is None)
    if quorum:
        click.echo(f", epoch {quorum['leader_epoch']}, high watermark {quorum['high_watermark']}\n")
        session.render(list(_quorum_rows(quorum)), VOTER_COLUMNS)
    click.echo()
    session.render(list(map(_described, body["brokers"])), BROKER_COLUMNS)
    if body["features"]:
        click.echo()
        session.render([_feature(feature) for feature in body["features"]], FEATURE_COLUMNS)


def _quorum_rows(quorum: Mapping[str, Any]) -> Any:
    for kind in ("voters", "observers"):
        for replica in quorum[kind]:
            yield {**replica, "role": "leader" if replica["id"] == quorum["leader"] else kind.removesuffix("s")}


def _feature(feature: Mapping[str, Any]) -> dict[str, Any]:
    least, most = feature["supported_min"], feature["supported_max"]
    release = f" ({feature['release']})" if feature["release"] else ""
    return {
        "feature": feature["name"],
        "level": f"{feature['finalized_level']}{release}",
        "supported": None if least is None else f"{least}-{most}",
    }


def _described(broker: Mapping[str, Any]) -> dict[str, Any]:
    return {**with_address(broker), "kafka_version": _release(broker)}


def _release(known: Mapping[str, Any]) -> str | None:
    at_least = known["kafka_version_at_least"]
    return known["kafka_version"] or (f"{at_least} or newer" if at_least else None)


_earlier = copy(list_of_brokers)
_earlier.hidden = True
group.add_command(_earlier, "brokers")  # its name before there was `kops brokers`
