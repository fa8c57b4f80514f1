"""What is asked of each store, and how its records answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError
from kops.core.models import TopicPartition
from kops.core.records.models import Record, timestamp_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.sources import REGISTERED
from kops.operations.records.formats import format_for
from kops.operations.services import Services
from kops.operations.state.query_keys import stored_key, window_size
from kops.operations.state.shown import shown

if TYPE_CHECKING:
    from kops.formats.base import Format


@dataclass(frozen=True)
class Question:
    """What is asked of one store.

    :param key: bytes of the key asked for; None: all keys
    :param committed: offsets up to which the store has its topic, where that is its changelog; None: all of it
    """

    store: Store
    keys: Format
    values: Format
    key: bytes | None
    committed: Mapping[TopicPartition, int] | None = None

    @property
    def compares_values(self) -> bool:
        """Tell whether keys of the same meaning may be other bytes: JSON in another order, or the id of another schema."""
        return self.keys.name in ("json", *REGISTERED)

    def accepts(self, inner: bytes) -> bool:
        """Tell whether a key is the one asked for."""
        if self.key is None or inner == self.key:
            return True
        return self.compares_values and shown(self.keys, inner) == shown(self.keys, self.key)

    def has(self, record: Record) -> bool:
        """Tell whether a record of the changelog is of a key asked for."""
        return record.key is not None and self.accepts(stored_key(self.store.type, record.key).inner)

    def row(self, record: Record) -> dict[str, Any]:
        """Return a record of the changelog as a row."""
        found = stored_key(self.store.type, record.key or b"", window_size(self.store))
        return {
            "store": self.store.name,
            "key": shown(self.keys, found.inner),
            **found.around,
            "value": shown(self.values, record.value),
            "timestamp": timestamp_text(record.timestamp),
            "partition": record.partition,
            "offset": record.offset if record.offset >= 0 else None,
        }


def questions(services: Services, state_file: StateFile, key: str | None) -> list[Question]:
    """Return what is asked of each store; of those alone whose keys can be written so.

    :raises UsageProblem: when the key is of no store's format
    """
    asked, wrong = [], []
    for store in state_file.stores:
        keys = format_for(services, store.key_form.name, f"{store.source.topic}-key")
        values = format_for(services, store.aggregate.form.name)
        try:
            data = None if key is None else keys.encode(keys.parse(key))
        except KopsError as error:
            wrong.append(error)
            continue
        asked.append(Question(store, keys, values, data))
    if not asked:
        raise wrong[0]
    return asked
