"""Tables made of tables, as a state file describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kops.core.statefile.sources import Form, Source

INNER, LEFT, OUTER = "inner", "left", "outer"
JOINS = (INNER, LEFT, OUTER)


@dataclass(frozen=True)
class Join:
    """A join with another table.

    :param kind: ``inner``, ``left`` or ``outer``
    :param right: the other table
    :param value: Spark SQL of the joined value, from ``key``, ``left`` and ``right``
    :param form: format of the joined value
    :param on: Spark SQL of the other table's key, from ``key`` and ``left``, for a foreign-key join; None: both have the same key
    """

    kind: str
    right: Table
    value: str
    form: Form
    on: str | None = None


@dataclass(frozen=True)
class Table:
    """A ``KTable``: of a topic or of another table, optionally joined with a further one, then filtered.

    :param place: where the state file declares it, such as ``stores.people``, for messages
    :param parent: the table that it is made of; None: it is made of ``source``
    :param history_ms: ``historyRetention`` of a versioned store of the source; None: not versioned
    :param where: Spark SQL of ``key`` and ``value``
    """

    name: str
    place: str
    key: Form
    form: Form
    source: Source | None = None
    parent: Table | None = None
    join: Join | None = None
    where: str | None = None
    history_ms: int | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The topics that it is computed from, each once, the left one first."""
        found: dict[str, Source] = {}
        for source in self.every_source:
            found.setdefault(source.topic, source)
        return tuple(found.values())

    @property
    def every_source(self) -> tuple[Source, ...]:
        """The topics as they are named, repeated if named more than once."""
        below = (self.parent, self.join.right if self.join else None)
        return (*((self.source,) if self.source else ()), *(source for table in below if table for source in table.every_source))

    @property
    def joins(self) -> bool:
        """Whether it is made of several tables."""
        return self.join is not None or (self.parent is not None and self.parent.joins)

    @property
    def needs_order(self) -> bool:
        """Whether a timestamp depends on which of two topics was read first, as in joins other than inner joins by the same key."""
        inside = (self.parent, self.join.right if self.join else None)
        own = self.join is not None and (self.join.kind != INNER or self.join.on is not None)
        return own or any(table.needs_order for table in inside if table)

    @property
    def foreign(self) -> bool:
        """Whether it contains a foreign-key join."""
        inside = (self.parent, self.join.right if self.join else None)
        return bool(self.join and self.join.on) or any(table.foreign for table in inside if table)
