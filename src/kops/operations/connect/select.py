"""Selecting the connectors of a command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kops.core.connect.models import Connector
from kops.core.errors import NotFound, OperationFailed, UsageProblem
from kops.core.selection import names_matching
from kops.operations.services import Services


def by_name(services: Services) -> dict[str, Connector]:
    """Return every connector by its name; one request."""
    return {connector.name: connector for connector in services.connect.connectors()}


def select(services: Services, patterns: Sequence[str], *, regex: bool = False) -> list[Connector]:
    """Return the connectors that match names and globs, or all if no pattern is given; one request.

    :raises NotFound: for a plain name that does not exist
    :raises OperationFailed: for one that exists, and whose state Connect does not say yet
    """
    found = by_name(services)
    try:
        return [found[name] for name in matching(patterns, found, "connector", "kops connect list", regex=regex)]
    except NotFound as missing:
        # Connect leaves those out of the list with states whose first state no worker has read yet (ConnectorsResource.listConnectors).
        stateless = sorted(set(patterns).intersection(services.connect.names()).difference(found))
        if not stateless:
            raise
        raise OperationFailed(
            f"Connect does not say the state of connector {stateless[0]} yet", hint="it was created a moment ago: retry"
        ) from missing


def matching(patterns: Sequence[str], names: Iterable[str], what: str, command: str, *, regex: bool = False) -> list[str]:
    """Return the names that match patterns.

    :param command: lists the existing names
    :raises NotFound: for a plain name that does not exist
    """
    try:
        return names_matching(patterns, names, regex=regex, what=what)
    except NotFound as missing:
        missing.hint = f"`{command}` shows what there is"
        raise


def select_some(services: Services, patterns: Sequence[str], *, regex: bool = False) -> list[Connector]:
    """Return the connectors that match names and globs; at least one is required.

    :raises UsageProblem: without a name, so that a missing argument never means all connectors
    :raises NotFound: for a plain name that does not exist
    """
    if not patterns:
        raise UsageProblem("which connector?", hint="name one or more; globs such as '*' are allowed")
    return select(services, patterns, regex=regex)


def counted(connectors: Sequence[object]) -> str:
    return f"{len(connectors)} connector{'' if len(connectors) == 1 else 's'}"


def named(names: Sequence[str], most: int = 3) -> str:
    """Name up to ``most`` connectors, or count them."""
    return f"connector {names[0]}" if len(names) == 1 else f"connectors {', '.join(names)}" if len(names) <= most else counted(names)
