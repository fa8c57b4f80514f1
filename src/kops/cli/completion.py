"""``kops completion``: the script that a shell needs."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the completion script: add `eval "$(kops completion bash)"` to ~/.bashrc (fish: `kops completion fish | source`)."""
    from click.shell_completion import get_completion_class

    from kops.cli.frame.main import COMPLETION, cli

    found = get_completion_class(shell)
    if found is None:  # pragma: no cover - the choice above knows them all
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "kops", COMPLETION).source())
