"""``kops diagnose``."""

from __future__ import annotations

import click

from kops.cli.frame.findings_view import fail_on_option, note_gaps, render_findings, write_findings
from kops.cli.frame.lazy import Command
from kops.cli.frame.options import regex_option
from kops.cli.frame.session import Session

CHECK_COLUMNS = ("subject", "check", "finds", "needs")


@click.command("diagnose", cls=Command)
@click.argument("names", metavar="[GROUP|TOPIC|CONNECTOR]...", nargs=-1)
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="A group, as Apache's tools take it; repeatable.")
@click.option("--topic", "topics", metavar="TOPIC", multiple=True, help="A topic, as Apache's tools take it; repeatable.")
@regex_option
@click.option(
    "--within", metavar="DURATION", default="1h", show_default=True, help="Unread data that expires within this time is critical."
)
@click.option(
    "--sample",
    metavar="DURATION",
    default="6s",
    show_default=True,
    help="Look at groups that are behind twice, this far apart, to see which ones move; 0s looks once.",
)
@click.option(
    "--history",
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="How far back to look for jumps, deletions and crash loops; 0s skips this check.",
)
@click.option("--checks", is_flag=True, help="List the checks and what each looks at, finds and needs; contacts nothing.")
@click.option("--capture", metavar="FILE", type=click.Path(), help="Compare an application with its program, see `kops streams capture`.")
@fail_on_option
@click.pass_obj
def diagnose(
    session: Session,
    /,
    *,
    names: tuple[str, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    regex: bool,
    within: str,
    sample: str,
    history: str,
    checks: bool,
    capture: str | None,
    fail_on: str,
) -> int:
    """Find what is wrong with groups and topics, or with the whole cluster.

    Looks at brokers, replicas, transactions, groups with their lag, members and past commits, quotas, the topics of Kafka Streams, and
    connectors with their tasks and topics; --checks lists all. Likely causes come first. Each finding has commands that look closer or
    repair it. At the end kops lists what it looked at and what it did not. Nothing is changed, and no group is joined.

    --capture compares an application's internal topics with what its program needs: missing topics, partition counts, settings, and
    behavior that no rebuild can repeat, such as wall-clock punctuators.

    Exit codes: 0 nothing found in what was looked at, 1 something found, 6 nothing found but not everything could be checked.
    """
    from kops.core.durations import parse_duration
    from kops.core.errors import ExitCode
    from kops.core.findings import Severity, any_at_least
    from kops.operations.diagnose.examine import as_json, check_rows, coverage, headline
    from kops.operations.diagnose.examine import diagnose as look
    from kops.operations.diagnose.incident import Options

    if checks:
        rows = check_rows()
        shown = rows if session.output_format in ("json", "yaml") else [{**row, "finds": ", ".join(row["finds"])} for row in rows]
        session.render(shown, CHECK_COLUMNS, whole=True)
        return 0
    options = Options(
        parse_duration(within, what="duration for --within"),
        parse_duration(sample, what="duration for --sample") / 1000,
        parse_duration(history, what="duration for --history"),
        capture or "",
    )
    found = look(session, [*names, *groups, *topics], options, regex=regex, named=session.cluster_words)
    if session.output_format in ("json", "yaml"):
        session.render_object(as_json(found), name="cluster_id")
    elif session.output_format == "table":
        write_findings(found.findings, headline(found), after=coverage(found))
    else:
        render_findings(session, found.findings)
    partial = int(ExitCode.PARTIAL if found.gaps else ExitCode.DONE)
    if session.output_format != "table":
        note_gaps(session, found.gaps)
    return int(ExitCode.FAILED) if any_at_least(found.findings, Severity[fail_on.upper()]) else partial
