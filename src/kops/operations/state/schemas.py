"""The schemas of a store's records, looked up before Spark decodes them: those whose ids the records have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from kops.core.errors import ConfigError, NotFound, OperationFailed, Refused
from kops.core.records.column_types import Disagreement
from kops.core.schemas.models import KIND_OF, RegisteredSchema
from kops.core.statefile import Form
from kops.core.statefile.sources import REGISTERED
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.gateways.registry.client import SchemaRegistry
    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.registered import UsedSchemaId
    from kops.spark.reading.source import KafkaSource

T = TypeVar("T")


def with_schemas(services: Services, kafka: KafkaSource, jobs: list[Job]) -> list[Job]:
    """Return jobs whose formats know the schemas that their records have.

    :raises ConfigError: when there is no registry, or the schemas are incompatible with each other
    :raises Refused: for an id that the registry does not have, naming the first record that has it
    """
    topics = dict.fromkeys(topic.topic for job in jobs for topic, _, _ in _parts(job))
    if not topics:
        return jobs
    from kops.gateways.registry.client import SchemaRegistry
    from kops.spark.driver.failures import explained

    registry = SchemaRegistry(services.connection)
    services.progress.step(f"looking up the schemas of {', '.join(topics)} ...")
    met = _SchemaIds(kafka)
    with explained("look up the schemas"):
        return [_ready_job(registry, met, job) for job in jobs]


class _SchemaIds:
    """The schema ids in topics; each topic is read for them once, however many stores come from it."""

    def __init__(self, kafka: KafkaSource) -> None:
        self._kafka = kafka
        self._found: dict[tuple[str, str, tuple[tuple[int, tuple[int, int]], ...]], list[UsedSchemaId]] = {}

    def of(self, topic: TopicRange, part: str) -> list[UsedSchemaId]:
        from kops.spark.reading.registered import used_schema_ids

        place = (topic.topic, part, tuple(sorted(topic.ranges.items())))
        if place not in self._found:
            self._found[place] = used_schema_ids(self._kafka, topic, part)
        return self._found[place]


def _ready_job(registry: SchemaRegistry, met: _SchemaIds, job: Job) -> Job:
    known: dict[Form, dict[int, RegisteredSchema]] = {}
    for topic, part, form in _parts(job):
        schemas = known.setdefault(form, {})
        for schema in _schemas(registry, met, topic, part, job):
            if schema.kind == KIND_OF[form.name]:
                schemas[schema.id] = schema
    ready = {form: _ready(registry, form, tuple(schemas.values()), job) for form, schemas in known.items()}
    return replace(job, store=substituted(job.store, ready)) if ready else job


def substituted(thing: T, forms: Mapping[Form, Form]) -> T:
    """Return a store, or a part of one, with some formats replaced by others."""
    if isinstance(thing, Form):
        return forms.get(thing, thing)  # type: ignore[return-value]
    if isinstance(thing, tuple):
        return tuple(substituted(each, forms) for each in thing)  # type: ignore[return-value]
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{each.name: substituted(getattr(thing, each.name), forms) for each in fields(thing)})
    return thing


def _parts(job: Job) -> Iterator[tuple[TopicRange, str, Form]]:
    for topic, source in zip(job.sources, job.store.inputs, strict=True):
        for part, form in (("key", source.key), ("value", source.value)):
            if form.name in REGISTERED:
                yield topic, part, form


def _schemas(registry: SchemaRegistry, met: _SchemaIds, topic: TopicRange, part: str, job: Job) -> Iterator[RegisteredSchema]:
    """Yield the schemas whose ids a topic has, and the latest of its subject: expressions may name a field that no record has yet."""
    for one in met.of(topic, part):
        try:
            yield registry.schema(one.id)
        except NotFound as missing:
            if job.skip_undecodable:
                continue
            raise Refused(
                f"store {job.store.name}: the {part} of {topic.topic}:{one.partition} at offset {one.offset} has the schema id {one.id}:"
                f" {missing.message}",
                hint="when the application itself skips such records, use --on-error skip",
                topic=topic.topic,
                partition=one.partition,
                offset=one.offset,
                part=part,
                schema_id=one.id,
            ) from missing
    try:
        yield registry.schema(registry.version_of(f"{topic.topic}-{part}"))
    except NotFound:
        return


def _ready(registry: SchemaRegistry, form: Form, schemas: tuple[RegisteredSchema, ...], job: Job) -> Form:
    """Return a format with its schemas.

    :raises ConfigError: when no column can hold what they describe
    """
    from kops.formats.registered_columns import column_of

    where = f"{job.state_file.path}: stores.{job.store.name}.from"
    try:
        read_as = None if form.reader is None else registry.schema(_reader(registry, form.reader))
    except NotFound as missing:
        raise ConfigError(
            f"{where}: the reader's schema {form.reader}: {missing.message}", hint="name SUBJECT, SUBJECT:VERSION or an id"
        ) from missing
    ready = replace(form, registered=tuple(sorted(schemas, key=lambda each: each.id)), read_as=read_as)
    if form.name == "json-schema":
        return ready
    try:
        column_of(ready)
    except Disagreement as wrong:
        hint = (
            "name the schema that the application was compiled with: {format: avro, reader: SUBJECT:VERSION}"
            if form.name == "avro"
            else None
        )
        raise ConfigError(f"{where}: the schemas of the records do not go together: {wrong}", hint=hint) from wrong
    except OperationFailed as wrong:
        raise ConfigError(f"{where}: {wrong.message}") from wrong
    return ready


def _reader(registry: SchemaRegistry, reader: str) -> int:
    return int(reader) if reader.isascii() and reader.isdigit() else registry.version_of(reader)
