"""``kops connect apply`` and ``delete``: connectors made as files declare them, or taken away."""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.plan import Plan
from kops.operations.connect.change import Wish, plan_changes
from kops.operations.connect.files import Difference, compare_files
from kops.operations.connect.look import password_settings
from kops.operations.connect.select import select_some
from kops.operations.connect.validate import WARNING, problems, refuse_wrong
from kops.operations.protocol import Services


def plan_apply(services: Services, paths: Sequence[str], *, prune: bool = False, validate: bool = True) -> Plan:
    """Return the plan that makes connectors as files declare them.

    :param prune: connectors that the files own and do not declare go
    :param validate: ask the plugins about each configuration that is new
    :raises ConfigError: naming file and setting
    :raises UsageProblem: when a plugin refuses a setting, or no worker has the plugin
    """
    comparison = compare_files(services, paths, prune=prune)
    wishes = [_wish(found) for found in comparison.differences]
    warnings: list[str] = []
    if validate:
        rows = [row for found in comparison.differences if found.wanted for row in problems(services, found.wanted)]
        refuse_wrong(rows)
        warnings = [
            f"{row['connector']}: {row['setting']}: {row['message']}; {row['hint']}".rstrip("; ") for row in rows if row["level"] == WARNING
        ]
    touched = {wish.name for wish in wishes}
    same = {one.name: "as declared" for one in comparison.declaration.connectors if one.name not in touched}
    return plan_changes(services, wishes, same, warnings=tuple(warnings))


def _wish(found: Difference) -> Wish:
    config, file = (found.wanted.config, found.wanted.file) if found.wanted else (None, "")
    return Wish(found.name, found.actual, config, file, found.passwords)


def plan_delete(services: Services, patterns: Sequence[str], *, regex: bool = False) -> Plan:
    """Return the plan that deletes connectors; their offsets stay.

    :raises NotFound: for a plain name that does not exist
    """
    found = select_some(services, patterns, regex=regex)
    passwords = {plugin: frozenset(password_settings(services, plugin)) for plugin in {connector.plugin for connector in found}}
    return plan_changes(services, [Wish(one.name, one, None, "", passwords[one.plugin]) for one in found], {})
