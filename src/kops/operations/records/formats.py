"""Formats by name for one cluster: kops' own, those of plugins, and those whose schemas are in the cluster's registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from kops.core.errors import KopsError, NotFound, UndecodableRecord, UsageProblem
from kops.core.extras import SCHEMAS, missing_distributions
from kops.formats.base import Format
from kops.formats.registry import FORMATS, OF_REGISTRY
from kops.operations.services import Services
from kops.plugins.loader import load_format

if TYPE_CHECKING:
    from kops.core.schemas.models import RegisteredSchema
    from kops.gateways.registry.client import SchemaRegistry


BYTES = FORMATS["bytes"]
FormatOfEach = Callable[[bytes | None], Format]
"""Returns the format of a key or value."""


def format_for(services: Services, name: str, writing: str | None = None) -> Format:
    """Return a format.

    :param writing: the schema that values are written with: an id, a subject (its latest version), or SUBJECT:VERSION; None: read only
    :raises UsageProblem: when there is no format of that name
    :raises ConfigError: when it needs a registry and the context has none
    """
    if name not in OF_REGISTRY:
        return load_format(name)
    from kops.formats.confluent import BY_NAME
    from kops.gateways.registry.client import SchemaRegistry

    registry = SchemaRegistry(services.connection)
    return BY_NAME[name](lookup_in(registry), cache(lambda: _written(registry, writing)) if writing is not None else None)


def lookup_in(registry: SchemaRegistry) -> Callable[[int], RegisteredSchema]:
    """Return a function that looks up the schemas of records by id."""

    def lookup(schema_id: int) -> RegisteredSchema:
        try:
            return registry.schema(schema_id)
        except NotFound as missing:
            raise UndecodableRecord(missing.message, hint=missing.hint) from missing

    return lookup


def registered_format(services: Services) -> Callable[[bytes], str | None] | None:
    """Return a function that finds the format of data by its leading schema id; None if the context has no registry.

    It raises KopsError when the registry is at fault: then the format is not known, and no guess replaces it.
    """
    if not services.connection.registry_url:
        return None
    from kops.core.schemas.models import FORMAT_OF
    from kops.formats.confluent import schema_id
    from kops.gateways.registry.client import SchemaRegistry

    registry = SchemaRegistry(services.connection)

    def named(data: bytes) -> str | None:
        try:
            return FORMAT_OF.get(registry.schema(schema_id(data)).kind)
        except (NotFound, UndecodableRecord):  # the guess continues without it
            return None

    return named


def format_of_each(services: Services, name: str | None) -> FormatOfEach:
    """Return a function that returns the format of a key or value to be shown.

    :param name: the format of all; None: bytes, or what the registry says of data that begin with the id of one of its schemas
    """
    if name is not None:
        form = format_for(services, name)
        return lambda _: form
    registered = registered_format(services)
    if registered is None or missing_distributions(SCHEMAS):
        return lambda _: BYTES
    forms = cache(partial(format_for, services))
    silent = False

    def chosen(data: bytes | None) -> Format:
        nonlocal silent
        if silent or not data or data[0] != 0:
            return BYTES
        try:
            found = registered(data)
        except KopsError as fault:  # the records are shown without the registry, which is not asked for each of them
            services.progress.step(f"{fault.message}: values in its formats are shown as bytes")
            silent = True
            return BYTES
        return BYTES if found is None else forms(found)

    return chosen


def unnamed_formats(services: Services, samples: Mapping[str, bytes]) -> list[str]:
    """Return a sentence per part of a record that begins with the id of one of the registry's schemas and was shown as bytes.

    :param samples: a key and a value of which the format was not named, by ``key`` and ``value``
    """
    found, registered = [], registered_format(services)
    for part, data in samples.items():
        try:
            name = registered(data) if registered is not None and data[0] == 0 else None
        except KopsError:  # a registry at fault: what is in it is not known, and was not asked for
            name = None
        if name is not None:
            found.append(f"{part}s begin with the id of a schema of the registry: --{part} {name} decodes them, for filters too")
    return found


def _written(registry: SchemaRegistry, wanted: str) -> RegisteredSchema:
    try:
        if wanted.isascii() and wanted.isdigit():
            return registry.schema(int(wanted))
        return registry.schema(registry.version_of(wanted))
    except NotFound as missing:
        raise UsageProblem(
            missing.message, hint="register the schema first: kops schemas register; or name it: --value-schema ID | SUBJECT[:VERSION]"
        ) from missing
