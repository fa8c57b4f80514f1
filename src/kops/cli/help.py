"""``kops help`` and ``kops version``: what people type before they know the options for it."""

from __future__ import annotations

import click

from kops import __version__
from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session


@click.command("help", cls=Command)
@click.argument("words", metavar="[NOUN [VERB]]", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, /, *, words: tuple[str, ...]) -> None:
    """Show the help of kops, of a noun or of a verb: `kops help offsets reset`."""
    found = ctx.find_root()
    for word in words:
        if not isinstance(found.command, click.Group):
            raise click.UsageError(f"'{found.command_path}' has no commands of its own; it has no {word!r}", found)
        name, command, _ = found.command.resolve_command(found, [word])
        if command is not None:
            found = click.Context(command, info_name=name, parent=found)
    click.echo(found.get_help(), color=ctx.color)


@click.command("version", cls=Command)
@click.pass_obj
def version(session: Session) -> None:
    """Show the version of kops."""
    if session.output_format == "table":
        click.echo(f"kops, version {__version__}")
    else:
        session.render_object({"version": __version__}, name="version")
