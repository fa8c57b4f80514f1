"""``kops doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kops.cli.lazy import Command
from kops.cli.session import Session


@click.command("doctor", cls=Command)
@click.option("--fetch", is_flag=True, help="Fetch the jars that are not in the cache yet.")
@click.option("--jars", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Check this folder in place of the cache.")
@click.pass_obj
def doctor(session: Session, *, fetch: bool, jars: Path | None) -> int:
    """Check what kops needs on this machine; the exit code is 1 when something is missing.

    With --fetch the jars of Apache Kafka and of Spark's Kafka source are there before an incident needs them.
    """
    from kops.operations.doctor import OK, examine

    checks = list(examine(session, fetch=fetch, jars_directory=jars))
    session.render([asdict(check) for check in checks], ["name", "status", "found"])
    missing = [check for check in checks if check.status != OK]
    hints: dict[str, list[str]] = {}
    for check in missing:
        hints.setdefault(check.hint or check.found, []).append(check.name)
    for hint, names in hints.items():
        session.note(f"{', '.join(names)}: {hint}")
    return 1 if missing else 0
