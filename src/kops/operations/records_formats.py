"""Formats by name for one cluster: kops' own, plugins', and those whose schemas the cluster's registry keeps."""

from __future__ import annotations

from kops.core.errors import NotFound, UndecodableRecord
from kops.formats.base import Format
from kops.formats.registry import OF_REGISTRY
from kops.operations.protocol import Services
from kops.plugins.loader import load_format


def format_for(services: Services, name: str) -> Format:
    """Return a format.

    :raises UsageProblem: when there is none of that name
    :raises ConfigError: when it needs a registry and the context has none
    """
    if name not in OF_REGISTRY:
        return load_format(name)
    from kops.formats.confluent import Avro, JsonSchema, RegisteredSchema
    from kops.gateways.schema_registry import SchemaRegistry

    registry = SchemaRegistry(services.connection)

    def lookup(schema_id: int) -> RegisteredSchema:
        try:
            return registry.schema(schema_id)
        except NotFound as missing:
            raise UndecodableRecord(missing.message, hint=missing.hint) from missing

    return Avro(lookup) if name == "avro" else JsonSchema(lookup)
