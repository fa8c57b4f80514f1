"""``kops brokers``: list, describe, config, log-dirs."""

from __future__ import annotations

import click

from kops.cli.brokers.shared import group, ids_argument
from kops.cli.frame.session import Session
from kops.output.table import Column

SETTING_COLUMNS = (Column("brokers"), Column("name"), Column("value"), Column("source"), Column("needs_restart", "RESTART"))


@group.command("config")
@ids_argument
@click.option("--all", "everything", is_flag=True, help="Show settings that have Kafka's defaults too.")
@click.pass_obj
def config(session: Session, /, *, ids: tuple[int, ...], everything: bool) -> int:
    """Show the settings of brokers, and where each comes from.

    SOURCE is broker (set while it runs), broker default (set for all while they run), server.properties or default, in this order of
    precedence. RESTART: only server.properties and a restart change it.
    """
    from kops.operations.brokers.settings import setting_rows

    rows, problems = setting_rows(session, ids, everything=everything)
    if session.output_format == "table":
        session.render([_readable(row) for row in rows], SETTING_COLUMNS, whole=True)
    else:
        session.render(rows, [*SETTING_COLUMNS, "sensitive"])
    return session.missing({f"broker {name}": problem for name, problem in problems.items()})


def _readable(row: dict[str, object]) -> dict[str, object]:
    from kops.core.topics.settings import readable_value

    value = row["value"]
    shown = "(hidden)" if value is None and row["sensitive"] else readable_value(str(row["name"]), str(value)) if value else value
    return {**row, "value": shown, "needs_restart": "yes" if row["needs_restart"] else None}
