"""Commands that kops suggests: they must be commands that kops takes."""

import shlex

import click

from kops.cli.frame.main import cli


def assert_taken(text: str) -> None:
    """Parse a suggested command as the command line would; nothing is run.

    :raises click.UsageError: when kops has no such command, option or argument
    """
    program, *words = shlex.split(text)
    assert program == "kops", text
    command: click.Command = cli
    context = click.Context(cli, info_name="kops", **cli.context_settings)  # a command remembers the names of its help option
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, text
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_context(context.info_name, words, parent=context.parent)
