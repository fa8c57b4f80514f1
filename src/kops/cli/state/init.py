"""``kops state init``."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session
from kops.cli.state.shared import stores_option


@click.command("init", cls=Command)
@click.argument("application", metavar="APPLICATION")
@stores_option
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a new file. [default: stdout]")
@click.option("--force", is_flag=True, help="Let --out replace a file.")
@click.pass_obj
def init(session: Session, *, application: str, stores: tuple[str, ...], out: str | None, force: bool) -> int:
    """Write a template for the state file of an application.

    It has the names of the stores whose changelogs are on the cluster, and comments. What a person has to fill in is marked TODO:
    `kops state rebuild` lists every TODO that is left, and does nothing.

    With a capture of the program no state file is needed: see `kops streams capture`.
    """
    from kops.core.statefile.template import open_fields, template, template_text
    from kops.operations.state.template import stores_seen

    if force and not out:
        raise click.UsageError("--force goes with --out")
    look, seen = stores_seen(session, application, stores)
    body = template(application, seen)
    text, left = template_text(body, seen, look.input_topics), list(open_fields(body))
    if out:
        _write(out, text, force=force)
        session.note(f"written: {out}")
    elif session.output_format == "json":
        shown = {"application": application, "state_file": body, "open": [{"field": path} for path in left], "notes": list(look.notes)}
        session.render_object(shown, name="application")
    else:
        click.echo(text, nl=False)
    session.note(*(f"note: {sentence}" for sentence in look.notes), f"to be filled in: {', '.join(left)}")
    return 0


def _write(path: str, text: str, *, force: bool) -> None:
    """Write a file.

    :param force: replace one that is there
    :raises UsageProblem: when it exists or cannot be written
    """
    from pathlib import Path

    from kops.core.errors import UsageProblem

    try:
        with Path(path).open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageProblem(f"cannot write {path}: {error.strerror}", hint="name a file that does not exist yet, or add --force") from error
