"""What a state file says about a changelog: its type, its formats, the size of its windows."""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UsageProblem
from kops.core.statefile import Store
from kops.formats.streams import store_types as types
from kops.operations.changelog.layouts import SUPPRESSED_SESSIONS, SUPPRESSED_WINDOWS
from kops.operations.engine.state_files import read_state_file


@dataclass(frozen=True)
class StoreSpec:
    """What a state file says about a store.

    :param window_size: in milliseconds; None for stores without windows
    """

    type_name: str
    key_name: str
    value_name: str
    window_size: int | None


def spec_in(path: str, topic: str) -> StoreSpec:
    """Return what a state file says about a changelog.

    :raises ConfigError: when it cannot be read
    :raises UsageProblem: when none of its stores has this changelog
    """
    stores = read_state_file(path).stores
    for store in stores:
        buffer = store.window is not None and store.window.buffer == topic
        if store.changelog == topic or buffer:
            window = store.window
            size = None if window is None or window.kind == types.SESSION else window.size_ms
            return StoreSpec(_type(store, buffer=buffer), store.key_form.name, store.aggregate.form.name, size)
    changelogs = ", ".join(store.changelog for store in stores)
    raise UsageProblem(f"{path} has no store whose changelog is {topic}", hint=f"changelogs of its stores: {changelogs}")


def _type(store: Store, *, buffer: bool) -> str:
    if store.window is not None:
        sessions = store.window.kind == types.SESSION
        if buffer:
            return SUPPRESSED_SESSIONS if sessions else SUPPRESSED_WINDOWS
        return types.SESSION if sessions else types.WINDOW
    return types.VERSIONED if store.type == types.VERSIONED else types.KEY_VALUE
