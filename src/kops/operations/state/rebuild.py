"""Plans to rebuild: append the missing records to the changelogs."""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.errors import Refused
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.times import to_milliseconds
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import drop_stage
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.change import REBUILD
from kops.operations.state.changelog_writes import refuse_times
from kops.operations.state.completeness import stale_local_state
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import ComputedStore
from kops.operations.state.plans import plan_computed
from kops.operations.state.rules.windows import counted, emitted_again, fading

ACTIONS = ("added", "changed", "removed", "erased")
_NAMED = 3


def plan_rebuild(services: Services, state_file: StateFile, options: ComputeOptions) -> Plan[StateArguments]:
    """Compute every store, stage what its changelog lacks, and return the plan to append it.

    :param options: if ``at`` is the end, or a time, the application is moved there
    """
    engine = options.recipe.engine(services, options.master)
    done = compute_all(services, state_file, engine, options, must_be_empty=True)
    computed = done.computed
    _refuse_versions(computed)
    now_ms = to_milliseconds(services.now())
    for found in computed:
        refuse_times(services, found.facts, found.contents.values(), now_ms, exactly_once=state_file.exactly_once)
    wipes = stale_local_state(state_file.application, computed)
    return plan_computed(
        engine,
        REBUILD,
        state_file,
        done,
        stores={found.facts.store.name: store_write(found) for found in computed if not found.facts.store.reuses_source},
        items=[item for found in computed for item in append_items(found)],
        summary=_summary(state_file, computed),
        warnings=(*wipes, *_window_warnings(computed, is_moved=bool(done.cut.moves), now_ms=now_ms)),
        wipes=wipes,
        notes=[note for found in computed for note in found.explained],
    )


def _refuse_versions(computed: Sequence[ComputedStore]) -> None:
    """Refuse to append to the changelog of a versioned store: each of its records is a version, and stays one."""
    for found in computed:
        if found.facts.store.type == VERSIONED and found.differing:
            drop_stage(*(done.stage for done in computed))
            raise Refused(
                f"store {found.facts.store.name} is versioned and differs in {found.differing:,} versions: its history cannot be unwritten",
                hint="--write replace recreates its changelog",
            )


def _window_warnings(computed: Sequence[ComputedStore], *, is_moved: bool, now_ms: int) -> list[str]:
    warnings = []
    for found in computed:
        store = found.facts.store
        if is_moved:
            warnings += emitted_again(store)
        if found.must_write and found.contents:
            warnings += fading(store, found.facts.settings, min(content.earliest for content in found.contents.values()), now_ms)
    return warnings


def append_items(found: ComputedStore) -> list[Item]:
    """Return one item per changelog partition. Tombstones alone that no local store needs are not a reason to write."""
    items = []
    for number, bounds in sorted(found.facts.changelog_bounds.items()):
        target, end = f"{found.facts.store.changelog}:{number}", bounds.log_end_offset
        content, actions = found.contents.get(number), found.actions.get(number, {})
        if content is None or not found.must_write:
            reason = "the topic is the changelog itself" if found.facts.store.reuses_source else "up to date"
            items.append(Item(target, "none", end, end, reason))
            continue
        counts = ", ".join(f"{actions[name]:,} {name}" for name in ACTIONS if actions.get(name))
        items.append(Item(target, "append", end, end + content.records, f"{counts} ({found.word})"))
    return items


def store_write(found: ComputedStore) -> StoreWrite:
    """Return what is written for a store. A versioned store's records are written in timestamp order: it drops records that come late."""
    return StoreWrite(
        changelog=found.facts.store.changelog,
        stage=found.stage,
        contents=held_json(found.contents) if found.must_write else {},
        in_order=found.facts.store.type == VERSIONED,
        staged_headers=found.counts.headers,
        facts={
            **found.reported,
            **counted(found.counts.noted),
            "actions": {str(number): dict(actions) for number, actions in found.actions.items()},
        },
    )


def _summary(state_file: StateFile, computed: Sequence[ComputedStore]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = [f"{found.facts.store.name}: {found.verdict.text}" for found in computed[:_NAMED]]
    more = f"; and {len(computed) - _NAMED} more stores" if len(computed) > _NAMED else ""
    what = f"({'; '.join(stores)}{more})"
    if not records:
        return f"the state of {state_file.application} {what} is up to date"
    return f"rebuild the state of {state_file.application} {what}: append {records:,} records"
