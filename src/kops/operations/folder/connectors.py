"""Connectors as a file of a folder of the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.connect.files import parse_declaration
from kops.core.connect.models import own_config
from kops.core.connect.secrets import masked
from kops.core.plan import Plan
from kops.core.selection import names_owned
from kops.operations.connect.apply import plan_apply, plan_delete
from kops.operations.connect.change import Steps
from kops.operations.connect.describe import password_settings
from kops.operations.connect.select import by_name
from kops.operations.services import Services


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the connectors as documents of ``kops connect apply``; secrets that are not references are hidden."""
    documents, hidden = [], []
    for name, connector in sorted(by_name(services).items()):
        config = own_config(connector.config)
        shown = masked(config, password_settings(services, config))
        hidden += [
            f"{setting} of connector {name} is hidden: give a reference such as ${{file:...}} before the file is applied"
            for setting in shown
            if shown[setting] != config[setting]
        ]
        documents.append({"name": name, "config": shown})
    return documents, tuple(hidden)


def plan(services: Services, file: str) -> Sequence[Plan[Steps]]:
    """Plan to create and change connectors as a file declares them."""
    return [plan_apply(services, [file])]


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Steps]]:
    """Plan to delete connectors that globs match and the file does not declare."""
    found = placed_documents(Path(file), needed="connector", missing_ok=True)
    declared = {one.name for one in parse_declaration([(file, *each) for each in found]).connectors}
    doomed = sorted(names_owned(owns, list(by_name(services))) - declared)
    return [plan_delete(services, doomed)] if doomed else []
