"""``kops connect apply``, ``alter`` and ``delete``: create connectors from files, change settings, remove connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.connect.files import DeclaredConnector
from kops.core.connect.models import own_config
from kops.core.connect.secrets import hidden_names
from kops.core.errors import UsageProblem
from kops.core.plan import Plan
from kops.operations.connect.change import Steps, plan_changes
from kops.operations.connect.create_topics import plan_needed
from kops.operations.connect.describe import password_settings
from kops.operations.connect.files import ConnectorChange, compare_files
from kops.operations.connect.select import select_some
from kops.operations.connect.topics import TopicLook
from kops.operations.connect.validate import WARNING, problems, refuse_wrong
from kops.operations.services import Services


def plan_apply(
    services: Services, paths: Sequence[str], *, prune: bool = False, validate: bool = True, create_topics: bool = False
) -> Plan[Steps]:
    """Plan to bring connectors in line with the files that declare them.

    :param prune: delete connectors that the files own and do not declare
    :param validate: let the plugins validate each new configuration
    :param create_topics: create the topics that the declared connectors lack, also those of connectors that stay as they are
    :raises ConfigError: naming file and setting
    :raises UsageProblem: when a plugin rejects a setting, or no worker has the plugin
    :raises KopsError: for ``create_topics`` when it cannot be seen which topics exist
    """
    comparison = compare_files(services, paths, prune=prune)
    declared, touched = comparison.declaration.connectors, {change.name for change in comparison.changes}
    warnings: list[str] = []
    look = TopicLook(services)
    topics, notes = plan_needed(services, declared, look) if create_topics else (None, ())
    if topics is not None:
        look.count_as_existing(topics.arguments.created)
    if validate:
        rows = [row for one in declared if one.name in touched for row in problems(services, one, look)]
        refuse_wrong(rows)
        warnings = [_warning(row) for row in rows if row["level"] == WARNING]
    same = {one.name: "as declared" for one in declared if one.name not in touched}
    return plan_changes(services, comparison.changes, same, warnings=tuple(warnings), notes=(*notes, *look.notes), topics=topics)


def plan_alter_settings(
    services: Services, patterns: Sequence[str], settings: Mapping[str, str], remove: Sequence[str], *, regex: bool = False
) -> Plan[Steps]:
    """Plan to change some settings of connectors; the others stay.

    :param remove: settings to remove
    :raises UsageProblem: for a secret that is written out, or when a plugin rejects a setting
    """
    if not settings and not remove:
        raise UsageProblem("nothing to change", hint="--config KEY=VALUE sets, --delete-config KEY removes")
    for name in hidden_names(settings):
        raise UsageProblem(
            f"{name} is a secret, and secrets do not belong on a command line",
            hint=f"use a reference such as {name}=${{file:/path:key}}, or apply a file",
        )
    changes, same, warnings, look = [], {}, [], TopicLook(services)
    for connector in select_some(services, patterns, regex=regex):
        before = own_config(connector.config)
        after = {key: value for key, value in {**before, **settings}.items() if key not in remove}
        if after == before:
            same[connector.name] = "already set"
            continue
        rows = list(problems(services, DeclaredConnector(connector.name, after, "", "--config"), look))
        refuse_wrong(rows)
        warnings += [_warning(row) for row in rows if row["setting"] in settings]
        passwords = password_settings(services, after)
        changes.append(ConnectorChange(connector.name, connector, after, "", passwords))
    return plan_changes(services, changes, same, warnings=tuple(warnings), notes=look.notes)


def _warning(row: Mapping[str, Any]) -> str:
    return f"{row['connector']}: {row['setting']}: {row['message']}; {row['hint']}".rstrip("; ")


def plan_delete(services: Services, patterns: Sequence[str], *, regex: bool = False) -> Plan[Steps]:
    """Plan to delete connectors; their offsets stay.

    :raises NotFound: for a plain name that does not exist
    """
    found = select_some(services, patterns, regex=regex)
    return plan_changes(services, [ConnectorChange(one.name, one, None, "", password_settings(services, one.config)) for one in found], {})
