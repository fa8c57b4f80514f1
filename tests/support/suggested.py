"""Commands that kops suggests: they must be commands that kops takes, and reach the same cluster."""

import shlex

import click

from kops.cli.frame.main import cli


def assert_taken(text: str, servers: str = "") -> None:
    """Parse a suggested command as the command line would; nothing is run.

    :param servers: the brokers that the command must name, as ``-B`` or ``--bootstrap-server``
    :raises click.UsageError: when kops has no such command, option or argument
    """
    program, *words = shlex.split(text)
    assert program == "kops", text
    assert not servers or words[-2:] == ["-B", servers], text
    command: click.Command = cli
    context = click.Context(cli, info_name="kops", **cli.context_settings)  # a command remembers the names of its help option
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, text
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_context(context.info_name, words, parent=context.parent)
