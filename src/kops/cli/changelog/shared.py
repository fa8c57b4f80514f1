"""The group ``kops changelog``, the options that its verbs share, and which changelog they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import FORMATS, isolation_option, on_error_option, spark_option

if TYPE_CHECKING:
    from kops.cli.frame.session import Session
    from kops.operations.changelog.detect import Detection
    from kops.operations.changelog.rows import NamedFormats
    from kops.operations.changelog.target import FrozenChangelog
    from kops.operations.engine.spark import Engine

TYPES = (
    "key-value",
    "versioned",
    "window",
    "session",
    "join",
    "outer-join",
    "suppress",
    "suppress-window",
    "suppress-session",
    "join-buffer",
    "subscription",
)
"""Those of ``operations.changelog.layouts``, which ``--help`` need not load."""


@click.group("changelog", cls=Group)
def group() -> None:
    """Read the changelogs of Kafka Streams stores."""


@dataclass(frozen=True)
class ReadingOptions:
    """What the shared options say.

    :param type_name: of the store; None: it is guessed
    :param window_size: as typed
    :param master: Spark's; None: without Spark, or with that of the context when ``spark`` is set
    """

    application: str | None
    store: str | None
    type_name: str | None
    key_name: str | None
    value_name: str | None
    right_name: str | None
    window_size: str | None
    state_file: str | None
    isolation: str
    skip_undecodable: bool
    spark: bool
    master: str | None


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which changelog, of what type, in which formats, and how it is read; the command gets them as ``how``."""

    @click.option("--application", metavar="ID", help="The application.id, with --store, in place of the topic.")
    @click.option("--store", metavar="NAME", help="The store, with --application.")
    @click.option(
        "--type",
        "type_name",
        type=click.Choice(TYPES),
        metavar="TYPE",
        help=f"Type of the store; guessed when left out: {', '.join(TYPES)}.",
    )
    @click.option("--key", "key_name", metavar="FORMAT", help=f"Format of the keys: {FORMATS}")
    @click.option("--value", "value_name", metavar="FORMAT", help="Format of the values.")
    @click.option("--right-value", "right_name", metavar="FORMAT", help="Format of the right side's values in an outer join's store.")
    @click.option("--window-size", metavar="DURATION", help="Size of the windows, such as 5m: it is not in the topic.")
    @click.option("--state-file", metavar="FILE", type=click.Path(), help="A state file that says type, formats and window size.")
    @on_error_option
    @isolation_option
    @click.option("--spark", is_flag=True, help="Read with Spark: faster for millions of records, and not limited by memory.")
    @spark_option("with --spark")
    @wraps(command)
    def wrapped(*args: Any, on_error: str, **options: Any) -> Any:
        own = {name: options.pop(name) for name in ReadingOptions.__dataclass_fields__ if name in options}
        if own["master"] and not own["spark"]:
            raise click.UsageError("--master needs --spark")
        return command(*args, how=ReadingOptions(**own, skip_undecodable=on_error == "skip"), **options)

    return wrapped


def target_of(session: Session, names: Sequence[str], how: ReadingOptions) -> FrozenChangelog:
    """Return the changelog that is named: a topic, an application and its store, or the options of that name."""
    from dataclasses import replace

    from kops.core.selection import parse_selection
    from kops.operations.changelog.target import changelog_topic, find_target

    if len(names) == 1 and not (how.application or how.store):
        return find_target(session, parse_selection(names[0]), isolation=how.isolation)
    if not names and how.application and how.store:
        names = (how.application, how.store)
    elif how.application or how.store or len(names) != 2:  # noqa: PLR2004 - application and store
        raise click.UsageError("name either the changelog topic, or the application and its store")
    application, store = names[0], parse_selection(names[1])
    topic = changelog_topic(session, application, store.topic)
    return find_target(session, replace(store, topic=topic), isolation=how.isolation)


def named_of(session: Session, how: ReadingOptions) -> NamedFormats:
    """Return the formats that were named, and the size of the windows."""
    from kops.core.durations import parse_duration
    from kops.operations.changelog.rows import NamedFormats
    from kops.operations.records.formats import format_for

    key, value, right = (format_for(session, name) if name else None for name in (how.key_name, how.value_name, how.right_name))
    size = parse_duration(how.window_size, what="window size") if how.window_size else None
    return NamedFormats(key, value, right, size)


def choose(
    session: Session, names: Sequence[str], how: ReadingOptions, named: NamedFormats
) -> tuple[FrozenChangelog, Detection, NamedFormats]:
    """Return which changelog is meant, what it is read as, and the formats that were named, here or in a state file.

    Says on stderr when the type is a guess, and when Spark would read better.
    """
    from dataclasses import replace

    from kops.operations.changelog.detect import detect
    from kops.operations.changelog.view import advice

    target, type_name = target_of(session, names, how), how.type_name
    if how.state_file:
        from kops.operations.changelog.detect import spec_in
        from kops.operations.records.formats import format_for

        spec = spec_in(how.state_file, target.topic)
        key, value = named.key or format_for(session, spec.key_name), named.value or format_for(session, spec.value_name)
        named = replace(named, key=key, value=value, window_size=spec.window_size if named.window_size is None else named.window_size)
        type_name = type_name or spec.type_name
    detected = detect(session, target, type_name)
    if detected.sentence:
        session.note(f"note: {detected.sentence}")
    if not how.spark and (advised := advice(target)):
        session.note(f"note: {advised}")
    return target, detected, named


def engine_of(session: Session, how: ReadingOptions) -> Engine | None:
    """Begin to start Spark when it is asked for."""
    if not how.spark:
        return None
    from kops.operations.engine.spark import start_engine

    return start_engine(session, how.master)
