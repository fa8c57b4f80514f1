"""``kops cluster``: describe, health, brokers, api-versions; features list, quorum show."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import click

from kops.cli.brokers.look import list_ as list_of_brokers
from kops.cli.brokers.look import with_address
from kops.cli.frame.findings_view import fail_on_option, note_gaps, render_findings, write_findings
from kops.cli.frame.lazy import Group
from kops.cli.frame.session import Session
from kops.core.errors import ExitCode
from kops.output.table import Column

VOTER_COLUMNS = ("id", "role", "endpoint", "log_end_offset", "lag", "lag_ms")
FEATURE_COLUMNS = ("feature", "level", "supported")
BROKER_COLUMNS = ("id", "address", "rack", Column("in_service", "UP"), "kafka_version")


@click.group(cls=Group)
def group() -> None:
    """Look at a cluster and its controllers, change features and voters, or keep it as files (export, diff, apply)."""


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
    found = examine(session, session.cluster_words)
    if session.output_format in ("json", "yaml"):
        session.render_object(as_json(found, least), name="cluster_id")
    elif session.output_format == "table":
        write_findings(found.findings, headline(found, least))
    else:
        render_findings(session, found.findings)
    partial = note_gaps(session, found.gaps)
    return partial if found.healthy(least) else int(ExitCode.FAILED)


@group.command("api-versions")
@click.pass_obj
def api_versions(session: Session, /) -> int:
    """Show which versions of requests the brokers support, a row for each range that differs among them."""
    from kops.operations.cluster.api_versions import api_version_rows

    rows, gaps = api_version_rows(session)
    session.render(rows, ("key", "request", Column("min_version", "MIN"), Column("max_version", "MAX"), "brokers"))
    return note_gaps(session, gaps)


@group.group("features")
def features() -> None:
    """List, upgrade and downgrade levels of features."""


@features.command("list")
@click.pass_obj
def list_features(session: Session, /) -> int:
    """Show the level of each feature, what every broker supports, what an upgrade brings, and whether it is FINAL."""
    from kops.operations.cluster.features import feature_rows

    rows, gaps = feature_rows(session)
    if session.output_format == "table":
        shown = [{**_feature(row), "brings": row["upgrade_brings"], "final": "yes" if row["upgrade_is_final"] else None} for row in rows]
        session.render(shown, (*FEATURE_COLUMNS, Column("brings", "UPGRADE BRINGS"), "final"), whole=True)
    else:
        session.render(rows, tuple(rows[0]) if rows else ("name",))
    return note_gaps(session, gaps)


@group.group("quorum")
def quorum() -> None:
    """Show the controllers, add and remove one."""


@quorum.command("show")
@click.pass_obj
def show_quorum(session: Session, /) -> int:
    """Show the voters and observers of the metadata log, and how far each is behind."""
    from kops.operations.cluster.quorum import show

    body = show(session)
    if session.output_format in ("json", "yaml"):
        session.render_object(body, name="leader")
    else:
        session.render(list(_quorum_rows(body)), (*VOTER_COLUMNS, Column("directory_id", "DIRECTORY")))
    if not body["dynamic"]:
        session.note("the voters are fixed by controller.quorum.voters: `kops cluster features upgrade kraft.version=1` allows changes")
    return 0


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
