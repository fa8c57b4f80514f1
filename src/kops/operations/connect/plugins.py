"""``kops connect plugins``: the plugins of the workers with their settings, and plugins for the sandbox's workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kops.core.errors import NotFound
from kops.core.secret_shapes import HIDDEN, is_secret_name
from kops.gateways.connect.plugins import plugin_folder
from kops.gateways.machine.jars import CONNECT_VERSION
from kops.operations.services import Services

Row = dict[str, Any]
ALIKE = 0.85
"""Minimum similarity (``difflib``) of a suggestion: class names have much in common."""
SETTING_COLUMNS = ("name", "type", "required", "default", "importance", "documentation")

COORDINATES: Mapping[str, str] = {
    "io.debezium.connector.postgresql.": "io.debezium:debezium-connector-postgres:3.6.0.Final",
    "io.debezium.connector.jdbc.": "io.debezium:debezium-connector-jdbc:3.6.0.Final",
    "io.aiven.kafka.connect.s3.": "io.aiven:s3-connector-for-apache-kafka:2.15.0",
}
"""Maven coordinates by the prefix of the class."""
WITH_KAFKA: Mapping[str, str] = {
    "org.apache.kafka.connect.file.": "connect-file",
    "FileStream": "connect-file",
    "org.apache.kafka.connect.mirror.": "connect-mirror",
}
"""Artifacts of Apache Kafka itself."""
ELSEWHERE: Mapping[str, str] = {
    "io.aiven.": "the releases of Aiven-Open on GitHub have it",
    "io.confluent.": "Confluent Hub has it",
}
"""Where to get what Maven Central does not have."""
_NEEDS = "it must be on the workers' plugin.path; "


def plugin_rows(services: Services, kind: str | None = None, *, every: bool = False) -> list[Row]:
    """Return the plugins that the workers have.

    :param kind: only this type: source, sink, converter, transformation, predicate, header_converter
    :param every: include converters, transforms and predicates
    """
    found = services.connect.plugins(connectors_only=not every and kind in (None, "source", "sink"))
    rows = [{"class": each["class"], "type": each.get("type"), "version": each.get("version")} for each in found]
    return sorted((row for row in rows if kind in (None, row["type"])), key=lambda row: (str(row["type"]), str(row["class"])))


def plugin_class(services: Services, name: str) -> str:
    """Resolve a plugin: a class, or one of the short forms that Connect accepts.

    :raises NotFound: suggesting similar plugins
    """
    classes = [str(each["class"]) for each in services.connect.plugins()]
    short = {form: each for each in classes for form in _short_forms(each)}
    if name in classes or name in short:
        return name if name in classes else short[name]
    near = get_close_matches(name, [*classes, *short], n=2, cutoff=ALIKE)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    raise NotFound(f"no worker has the plugin {name}", hint=f"{meant}`kops connect plugins list` shows the available ones", plugin=name)


def plugin_type(services: Services, name: str) -> str:
    """Return the type of a plugin: sink or source.

    :raises NotFound: when no worker has it
    """
    found = plugin_class(services, name)
    return next(str(each.get("type")) for each in services.connect.plugins() if each["class"] == found)


def _short_forms(name: str) -> tuple[str, ...]:
    last = name.rsplit(".", 1)[-1]
    return (last, last.removesuffix("Connector"))


def plugin_body(services: Services, name: str) -> Row:
    """Return a plugin with its settings, required ones first.

    :raises NotFound: when no worker has it
    """
    plugin = plugin_class(services, name)
    settings = [_setting(each) for each in services.connect.plugin_settings(plugin)]
    return {"class": plugin, "settings": sorted(settings, key=lambda each: (not each["required"], each["group"] or "", each["name"]))}


def _setting(found: dict[str, Any]) -> Row:
    default, name = found.get("default_value"), str(found["name"])
    secret = found.get("type") == "PASSWORD" or is_secret_name(name)
    return {
        "name": name,
        "type": str(found.get("type", "")).lower(),
        "required": bool(found.get("required")),
        "default": HIDDEN if secret and default else default,
        "importance": str(found.get("importance", "")).lower(),
        "group": found.get("group"),
        "documentation": " ".join(str(found.get("documentation") or "").split()),
    }


def add_plugins(services: Services, coordinates: Sequence[str]) -> list[Row]:
    """Fetch plugins into the cache, where the sandbox's workers find them.

    :raises UsageProblem: for an invalid Maven coordinate
    :raises MissingRequirement: when one cannot be fetched
    """
    rows = []
    for coordinate in coordinates:
        folder = plugin_folder(services.directories.cache, coordinate, progress=services.progress)
        rows.append({"plugin": coordinate, "directory": str(folder), "jars": len(list(folder.rglob("*.jar")))})
    return rows


def install_hint(plugin: str) -> str:
    """Return a hint about a plugin that no worker has.

    :param plugin: its class, or a short form that Connect accepts
    """
    coordinate = _first(COORDINATES, plugin)
    if artifact := _first(WITH_KAFKA, plugin):
        coordinate = f"org.apache.kafka:{artifact}:{CONNECT_VERSION}"
    if not coordinate and (place := _first(ELSEWHERE, plugin)):
        return f"{_NEEDS}it is not on Maven Central, {place}; for the sandbox: kops sandbox up --connect --plugins FOLDER-OF-FOLDERS"
    return f"{_NEEDS}for the sandbox: kops connect plugins add {coordinate or 'GROUP:ARTIFACT:VERSION'}, then restart them"


def _first(places: Mapping[str, str], plugin: str) -> str:
    return next((place for beginning, place in places.items() if plugin.startswith(beginning)), "")
