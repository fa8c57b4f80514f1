"""Completes names of topics, groups, contexts and settings: within a second, and without a word when it cannot.

Which names an argument or option takes follows from its metavar, so that a new command is completed without doing anything for it.
"""

from __future__ import annotations

import os
import re
import sys
from threading import TIMEOUT_MAX, Thread

import click
from click.shell_completion import CompletionItem

from kops.cli.frame.options import META
from kops.core.visible import visible
from kops.operations.completion import CONNECTORS, CONTEXTS, GROUPS, SETTING_NAMES, SETTINGS, SUBJECTS, TOKENS, TOPICS, USERS

BUDGET_SECONDS = 0.7
"""For the question to the brokers; the rest of the second is Python's start."""
BUDGET = "KOPS_COMPLETION_SECONDS"
"""Names another budget, for brokers that are far away."""

_WORD = re.compile(r"[A-Z]+(?:_[A-Z]+)*")
_KINDS = {"TOPIC": TOPICS, "GROUP": GROUPS, "APPLICATION": GROUPS, "CONTEXT": CONTEXTS, "SUBJECT": SUBJECTS, "USER": USERS}
_KINDS |= {"CONNECTOR": CONNECTORS, "CONNECTOR_OR_GLOB": CONNECTORS, "TOKEN": TOKENS}
_OPTIONS = {"--topic": TOPICS, "--group": GROUPS, "--application": GROUPS, "--application-id": GROUPS, "--context": CONTEXTS}
_NOUNS = {"topics": TOPICS, "groups": GROUPS, "context": CONTEXTS}
_SETTINGS = {"--config": SETTINGS, "--delete-config": SETTING_NAMES}
"""Of topics; a connector's settings depend on its class."""
_NEW = ("create", "add", "import")
"""Verbs whose name must not be there yet."""


def complete_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the names that a parameter takes, when it takes names: asked for in a thread, for no longer than the budget."""
    found: list[str] = []
    kinds, budget = kinds_of(ctx, param), _budget()

    def ask() -> None:
        from kops.cli.frame.session import Session
        from kops.operations.completion import names

        try:
            session = Session({**ctx.meta.get(META, {}), "quiet": True, "verbose": False})
            for kind in kinds:
                found.extend(names(session, kind, incomplete, seconds=budget))
        except Exception:  # noqa: S110 - errors have no reader: a shell waits for names
            pass

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(budget)
    if asking.is_alive() and "_KOPS_COMPLETE" in os.environ:
        # Leaving in the usual way would wait for the client to give up.
        sys.stdout.flush()
        os._exit(0)
    return [CompletionItem(name) for name in found if visible(name) == name]  # others would act on the shell's line


def kinds_of(ctx: click.Context, param: click.Parameter) -> list[str]:
    """Return which names a parameter takes: by its option, else by the words of its metavar, else by the noun of its command."""
    noun = ctx.parent.info_name if ctx.parent is not None else None
    if noun == "topics" and (of_settings := [_SETTINGS[option] for option in param.opts if option in _SETTINGS]):
        return of_settings
    named = [_OPTIONS[option] for option in param.opts if option in _OPTIONS]
    if named and ctx.info_name not in _NEW:
        return named
    by_metavar = [_KINDS[word] for word in _WORD.findall(param.metavar or "") if word in _KINDS]
    if by_metavar:
        return by_metavar
    is_object = isinstance(param, click.Argument) and (param.metavar is None or "NAME" in param.metavar)
    return [_NOUNS[noun]] if is_object and noun in _NOUNS and ctx.info_name not in _NEW else []


def _budget() -> float:
    """Return the seconds that completion may take; anything but a number is ignored."""
    try:
        return min(float(os.environ[BUDGET]), TIMEOUT_MAX)
    except (KeyError, ValueError):
        return BUDGET_SECONDS
