"""The topics that a state file names: their formats, and where the application began to read them."""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.schemas.models import KIND_OF, RegisteredSchema

OFFSET, TIME, LATEST = "offset", "time", "latest"
FORMATS = ("string", "bytes", "long", "int", "short", "double", "float", "json", "uuid")
REGISTERED = tuple(KIND_OF)
"""Formats whose schemas a registry keeps: they are read, and not written."""


@dataclass(frozen=True)
class Form:
    """The format of a key or a value.

    :param name: one of ``FORMATS`` or ``REGISTERED``, or that of a plugin's format
    :param schema: for JSON that expressions use: its fields as a Spark DDL schema, ``item string, price double``
    :param reader: for Avro: the schema that the application was compiled with, as a registry's SUBJECT, SUBJECT:VERSION or id
    :param registered: the schemas that records have, once they are known
    :param read_as: the schema that ``reader`` names, once it is known
    :param plugin: it is a plugin's format
    """

    name: str
    schema: str | None = None
    reader: str | None = None
    registered: tuple[RegisteredSchema, ...] = ()
    read_as: RegisteredSchema | None = None
    plugin: bool = False

    @property
    def is_only_read(self) -> bool:
        """Tell whether kops reads it and does not write it: values of such a topic are kept as they were read."""
        return self.plugin or self.name in REGISTERED

    def __str__(self) -> str:
        return self.name


WALL_CLOCK = "wall-clock"
"""In place of an expression of a record's time: the application's own clock, which nothing holds."""


@dataclass(frozen=True)
class Start:
    """Where the application began to read a topic.

    :param kind: ``OFFSET``, ``TIME``, or ``LATEST``: at the end of then, so that nobody knows where
    :param value: the offset of every partition, or milliseconds since the epoch
    :param offsets: (partition, offset) of every partition, where they differ
    """

    kind: str
    value: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Source:
    """The topic that a store comes from.

    :param start: where the application began to read it; None: at its beginning
    :param timestamp: Spark SQL of what the application's ``TimestampExtractor`` gives, or ``WALL_CLOCK``; None: the record's own
    """

    topic: str
    key: Form
    value: Form
    start: Start | None = None
    timestamp: str | None = None

    @property
    def extracts(self) -> str | None:
        """Return the expression of a record's time; None where it is the record's own, or nothing holds it."""
        return None if self.timestamp == WALL_CLOCK else self.timestamp

    @property
    def needs_headers(self) -> bool:
        """Tell whether that expression may look at headers."""
        return self.extracts is not None and "headers" in self.extracts
