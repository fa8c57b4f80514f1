"""State files on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.config.files import read_text
from kops.config.yaml_files import read_documents
from kops.core.errors import ConfigError, UsageProblem
from kops.core.statefile import StateFile, Store, parse_state_file
from kops.core.statefile.fields import nearest
from kops.core.statefile.template import refuse_open

if TYPE_CHECKING:
    from kops.core.statefile.reducers import Reducer


def read_state_file(path: str, stores: Sequence[str] = ()) -> StateFile:
    """Read a state file, keeping the named stores only.

    :param stores: names; all when empty
    :raises ConfigError: when it cannot be read or something in it is wrong
    :raises UsageProblem: when it has no such store
    """
    body = _only(
        path,
        read_documents(
            Path(path),
            what="state file",
            hint="name a YAML file that says how stores are made",
            wrong="see the state file of an example",
        ),
    )
    refuse_open(path, body)
    found = parse_state_file(path, body, _plugin_formats)
    known = {store.name: store for store in found.stores}
    for name in stores:
        if name not in known:
            raise UsageProblem(f"{path} has no store {name}", hint=f"{nearest(name, known)}stores: {', '.join(known)}")
    chosen = [known[name] for name in stores] or found.stores
    _refuse_broken_formats(path, chosen)
    return replace(found, stores=tuple(_with_reducer(store, path) for store in chosen))


def _only(path: str, bodies: Sequence[Any]) -> Any:
    if len(bodies) > 1:
        raise ConfigError(f"{path}: it has {len(bodies)} YAML documents, and a state file is one", hint="take out the line ---")
    return bodies[0] if bodies else None


def _plugin_formats() -> list[str]:
    from kops.plugins.loader import installed, is_disabled

    return [plugin.name for plugin in installed("format") if not is_disabled(plugin)]


def _refuse_broken_formats(path: str, stores: Sequence[Store]) -> None:
    """Refuse formats of plugins that cannot be loaded.

    :raises ConfigError: naming store and plugin
    """
    from kops.plugins.loader import load_format

    for store in stores:
        for form in {form for source in store.inputs for form in (source.key, source.value) if form.plugin}:
            try:
                load_format(form.name)
            except ConfigError as wrong:
                raise ConfigError(f"{path}: stores.{store.name}.from: {wrong.message}", hint=wrong.hint, **wrong.details) from wrong


def _with_reducer(store: Store, path: str) -> Store:
    """Replace the name of a reducer by the reference that executors import, after checking that it exists."""
    if store.aggregate.kind != "reducer":
        return store
    from kops.core.statefile.reducers import load_reducer
    from kops.plugins.loader import reducer_reference

    try:
        reference = _with_module_source(reducer_reference(store.aggregate.expression), path)
        _refuse_without_subtraction(store, load_reducer(reference))
    except ConfigError as wrong:
        message = f"{path}: stores.{store.name}.aggregate.reducer: {wrong.message}"
        raise ConfigError(message, hint=wrong.hint, **wrong.details) from wrong
    return replace(store, aggregate=replace(store.aggregate, expression=reference))


def _with_module_source(reference: str, path: str) -> str:
    """Return a reducer with its module's source if that is next to the state file; an installed module takes precedence."""
    from importlib.util import find_spec

    from kops.core.statefile.reducers import ReducerWithSource

    module = reference.partition(":")[0]
    beside = Path(path).parent / f"{module}.py"
    if "." in module or not beside.is_file() or find_spec(module) is not None:
        return reference
    return ReducerWithSource.of(reference, read_text(beside))


def _refuse_without_subtraction(store: Store, reducer: Reducer) -> None:
    from kops.core.statefile.reducers import Subtractor

    if store.table is not None and not isinstance(reducer, Subtractor):
        raise ConfigError(f"{store.aggregate.expression} cannot subtract what left a group", hint="give it remove(key, value, aggregate)")
