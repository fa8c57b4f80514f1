"""Groups and commands of kops: lazily loaded, with the shared options on every verb.

The root's help comes from a static table, so ``kops --help`` imports no command.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click

from kops.cli.frame.options import SHARED_OPTIONS


class _Text(click.types.StringParamType):
    """Text, completed with names where the parameter takes names of topics, groups or contexts."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from kops.cli.frame.completing import complete_named

        return list(complete_named(ctx, param, incomplete))


class Command(click.Command):
    """A verb. Takes the shared options after its own, and lists them apart. Every text that is a name is completed by shells."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own = len(self.params)
        self.params = [*self.params, *(make() for make in SHARED_OPTIONS)]
        for param in self.params:
            if type(param.type) is click.types.StringParamType:
                param.type = _TEXT

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own options, then the shared ones."""
        help_option = self.get_help_option(ctx)
        own = [param for param in self.params[: self._own] if isinstance(param, click.Option)]
        own += [help_option] if help_option else []
        for title, params in (("Options", own), ("Shared options", self.params[self._own :])):
            records = [record for param in params if (record := param.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


_TEXT = _Text()


class Group(Command, click.Group):
    """A noun, or a group of verbs."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if no command is given; that is not an error."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb by its name or by another that it is known by."""
        return super().resolve_command(ctx, [self.full_name(ctx, args[0]), *args[1:]])

    def full_name(self, ctx: click.Context, name: str) -> str:
        """Return the name of the verb that a word means: ``ls`` is ``list``."""
        known = self.list_commands(ctx)
        return "list" if name == "ls" and name not in known and "list" in known else name

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, or say which one was probably meant."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            suggest(ctx, cmd_name, self.list_commands(ctx))
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs first: they are what the reader looks for."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each verb with its whole first sentence, where click would cut it off."""
        verbs = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(limit=1000)) for name, verb in verbs if verb and not verb.hidden])


Group.group_class = Group


def suggest(ctx: click.Context, name: str, known: list[str]) -> None:
    """Raise a usage error that names the nearest command, or the nouns that have this verb, when there are any."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    if near:
        raise click.UsageError(f"No such command {name!r}. Did you mean {near[0]!r}?", ctx)
    root = ctx.find_root()
    if isinstance(ctx.command, click.Group) and ctx.command is not root.command:
        verbs_here = {verb: command for verb in known if (command := ctx.command.get_command(ctx, verb))}
        with_option = [verb for verb, command in verbs_here.items() if any(f"--{name}" in option.opts for option in command.params)]
        if len(with_option) == 1:  # an option of all verbs, such as --context, is not a verb's own
            raise click.UsageError(f"No such command {name!r}. Did you mean '{ctx.command_path} {with_option[0]} --{name}'?", ctx)
    if isinstance(root.command, LazyGroup):
        verbs = root.command.verbs(root)
        near = difflib.get_close_matches(name, verbs, n=1)
        if near:
            raise click.UsageError(f"No such command {name!r}. Did you mean {_either(verbs[near[0]])}?", ctx)


def _either(commands: list[str]) -> str:
    named = [f"'kops {command}'" for command in commands]
    return named[0] if not named[1:] else f"{', '.join(named[:-1])} or {named[-1]}"


class LazyGroup(Group):
    """The root: nouns by section, ``name -> (module:attribute, one line of help)``; what is not there may be a plugin's."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, tuple[str, str]]], plugin: Callable[[str], Any], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.nouns = {name: noun for nouns in sections.values() for name, noun in nouns.items()}
        self._plugin = plugin

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """Return the nouns in the order of the sections."""
        return list(self.nouns)

    def verbs(self, ctx: click.Context) -> dict[str, list[str]]:
        """Return by verb the commands that end in it, such as ``groups lag``. This imports every noun."""
        found: dict[str, list[str]] = {}
        for noun in self.nouns:
            group = self.get_command(ctx, noun)
            for verb in group.list_commands(ctx) if isinstance(group, Group) else ():
                found.setdefault(verb, []).append(f"{noun} {verb}")
        return found

    def full_name(self, ctx: click.Context, name: str) -> str:  # noqa: ARG002 - the contract
        """Return the noun that a word means: ``topic`` is ``topics``, ``contexts`` is ``context``, where no plugin has that name."""
        other = f"{name}s" if f"{name}s" in self.nouns else name.removesuffix("s")
        return other if name not in self.nouns and other in self.nouns and self._plugin(name) is None else name

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one noun, or one plugin's command."""
        if cmd_name in self.nouns:
            module, attribute = self.nouns[cmd_name][0].split(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        plugin: click.Command | None = self._plugin(cmd_name)
        if plugin is None and not ctx.resilient_parsing:
            suggest(ctx, cmd_name, list(self.nouns))
        return plugin

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as click calls it
        """Write the sections; nothing is imported."""
        widest = max(map(len, self.nouns))
        for title, nouns in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in nouns.items()])
