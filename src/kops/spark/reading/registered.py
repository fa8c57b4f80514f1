"""Keys and values that are decoded in Python, in batches of Arrow columns.

Those with schemas in a registry, by schemas that were looked up before; and those in the formats of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.errors import UndecodableRecord
from kops.core.json_values import write_json
from kops.core.records.column_types import ListOf, MapOf, Struct, Type, ddl
from kops.core.statefile import Form
from kops.formats.avro_types import NotHeldError
from kops.formats.registered_columns import WRONG, Decode, column_of
from kops.spark.frames import expression

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource

BY_PYTHON = ("avro", "protobuf")
"""Formats for which Spark SQL needs further jars; for JSON it does not."""
READ, IS_WRONG = "_read", "_wrong"
"""Suffixes of the name of a column of bytes: for the decoded value, and for whether the bytes are not in the format."""
_ID = "cast(conv(hex(substring({0}, 2, 4)), 16, -10) as bigint)"


@dataclass(frozen=True)
class UsedSchemaId:
    """A schema id that occurs in records, and the first record that has it."""

    id: int
    partition: int
    offset: int


def used_schema_ids(kafka: KafkaSource, wanted: TopicRange, part: str) -> list[UsedSchemaId]:
    """Return the schema ids in the keys or values of a topic.

    :param part: key or value
    """
    framed = kafka.read(wanted).where(is_framed(part)).selectExpr(f"{_ID.format(part)} as id", "partition", "offset")
    found = framed.groupBy("id").agg(expression("min(struct(partition, offset)) as first")).collect()
    return [UsedSchemaId(row.id, row.first.partition, row.first.offset) for row in found]


def is_framed(column: str) -> str:
    """Return SQL of whether bytes begin as in the wire format."""
    return f"(length({column}) >= 5 and substring({column}, 1, 1) = x'00')"


def has_known_id(column: str, form: Form) -> str:
    """Return SQL of whether bytes begin with the id of one of a form's schemas."""
    ids = [str(each.id) for each in form.registered] or ["null"]
    return f"({is_framed(column)} and coalesce({_ID.format(column)} in ({', '.join(ids)}), false))"


def with_read(records: DataFrame, forms: Mapping[str, Form]) -> DataFrame:
    """Add ``READ`` and ``IS_WRONG`` columns for the columns of bytes whose formats need Python.

    :param forms: by column
    :raises Disagreement: when one column cannot hold the values of all schemas
    """
    needed = {column: form for column, form in forms.items() if needs_python(form)}
    if not needed:
        return records
    added = [f"{column}{READ} {ddl(_column_of(form)[0])}, {column}{IS_WRONG} boolean" for column, form in needed.items()]
    kept = [f"{field.name} {field.dataType.simpleString()}" for field in records.schema.fields]

    def decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        decoders = {column: _column_of(form) for column, form in needed.items()}
        for batch in batches:
            yield _decoded(batch, decoders)

    return records.mapInArrow(decode, ", ".join([*kept, *added]))


def needs_python(form: Form) -> bool:
    """Whether Spark SQL has no function for a format."""
    return form.plugin or form.name in BY_PYTHON


def _column_of(form: Form) -> tuple[Type, Decode]:
    """Return the type of a column and its decoding function. A plugin's value becomes a text: JSON, unless it is one already."""
    if not form.plugin:
        kind, decode = column_of(form)
        return kind, lambda data: decode(data) if data else WRONG
    from kops.plugins.loader import load_format

    plugin = load_format(form.name)

    def read(data: bytes) -> Any:
        try:
            shown = plugin.show(plugin.decode(data))
        except UndecodableRecord:
            return WRONG
        return shown if shown is None or isinstance(shown, str) else write_json(shown, compact=True)

    return "string", read


def arrow_type(kind: Type) -> pyarrow.DataType:
    import pyarrow

    if isinstance(kind, Struct):
        return pyarrow.struct([pyarrow.field(name, arrow_type(each)) for name, each in kind.fields.items()])
    if isinstance(kind, ListOf):
        return pyarrow.list_(arrow_type(kind.item))
    if isinstance(kind, MapOf):
        return pyarrow.map_(pyarrow.string(), arrow_type(kind.value))
    if kind.startswith("decimal("):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return pyarrow.decimal128(int(precision), int(scale))
    scalars = {
        "boolean": pyarrow.bool_(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "float": pyarrow.float32(),
        "double": pyarrow.float64(),
        "binary": pyarrow.binary(),
        "timestamp": pyarrow.timestamp("us", tz="UTC"),
        "timestamp_ntz": pyarrow.timestamp("us"),
        "date": pyarrow.date32(),
    }
    return scalars.get(kind, pyarrow.string())


def _decoded(batch: pyarrow.RecordBatch, decoders: Mapping[str, tuple[Type, Decode]]) -> pyarrow.RecordBatch:
    import pyarrow

    arrays, names = list(batch.columns), list(batch.schema.names)
    for column, (kind, decode) in decoders.items():
        values = _values(batch, column, decode)
        arrays.append(pyarrow.array([None if value is WRONG else value for value in values], arrow_type(kind)))
        arrays.append(pyarrow.array([value is WRONG for value in values]))
        names += [f"{column}{READ}", f"{column}{IS_WRONG}"]
    return pyarrow.RecordBatch.from_arrays(arrays, names)


def _values(batch: pyarrow.RecordBatch, column: str, decode: Decode) -> list[Any]:
    """Return what a column's bytes stand for.

    :raises NotHeldError: naming the record and the field
    """
    found: list[Any] = []
    for row, data in enumerate(batch.column(column).to_pylist()):
        try:
            found.append(None if data is None else decode(data))
        except NotHeldError as wrong:
            topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
            raise NotHeldError(
                f"the {column.strip('_')} of {topic}:{partition} at offset {offset} has no place in a column: {wrong}"
            ) from wrong
    return found
