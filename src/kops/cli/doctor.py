"""``kops doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session


@click.command("doctor", cls=Command)
@click.option(
    "--fetch",
    is_flag=False,
    flag_value="kafka",
    type=click.Choice(["kafka", "connect", "registry", "all"]),
    help="Fetch what is not in the cache: kafka (default), connect, registry or all.",
)
@click.option("--jars", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Check this directory instead of the cache.")
@click.pass_obj
def doctor(session: Session, *, fetch: str | None, jars: Path | None) -> int:
    """Check what kops needs on this machine; exit code 1 if something is missing.

    With --fetch the jars of Apache Kafka and of Spark's Kafka source are fetched before an incident needs them. Connect and the registry
    are needed only for the sandbox: they are fetched on first use, or with --fetch connect and --fetch registry.
    """
    from kops.operations.contexts.doctor import MISSING, examine

    checks = list(examine(session, fetch=fetch, jars_directory=jars))
    session.render([asdict(check) for check in checks], ["name", "status", "found"], whole=True)
    missing = [check for check in checks if check.status == MISSING]
    hints: dict[str, list[str]] = {}
    for check in missing:
        hints.setdefault(check.hint or check.found, []).append(check.name)
    for hint, names in hints.items():
        session.note(f"{', '.join(names)}: {hint}")
    return 1 if missing else 0
