"""How a store's staged records are written, and what becomes of each partition: the same for stores with headers and without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kops.core.errors import OperationFailed, VerificationFailed
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.protocol.engine import failed
from kops.operations.state.engine import Engine

if TYPE_CHECKING:
    from kops.spark.staging.writer import Target, Written


def target_of(engine: Engine, plan: Plan, name: str, partitions: int, *, headers: bool = False) -> Target:
    """Say what is about to be written, and return where it goes.

    :param partitions: of the changelog
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.staging.writer import Target

    store, arguments = plan.arguments["stores"][name], plan.arguments
    total = sum(content["records"] for content in store["contents"].values())
    engine.services.progress.step(f"writing {total:,} records to {store['changelog']}")
    transactional_id = f"kops-{arguments['application']}-{name}" if arguments["exactly_once"] else None
    settings, in_order = librdkafka_settings(engine.services.connection), bool(store.get("in_order"))
    return Target(store["changelog"], settings, transactional_id, partitions=partitions, in_order=in_order, headers=headers)


def written_results(store: Mapping[str, Any], written: Mapping[int, Written], items: Mapping[str, Item], hint: str) -> Iterator[ItemResult]:
    """Yield a result for each partition that was to be written.

    :param hint: what to do where records are missing
    """
    for number, content in sorted(store["contents"].items(), key=lambda pair: int(pair[0])):
        report, item = written.get(int(number)), items[f"{store['changelog']}:{number}"]
        count = report.written if report else 0
        if (report and report.failed) or count != content["records"]:
            reason = (report.error if report else None) or "the others are missing"
            why = f"{count} of {content['records']} records of {item.target} were written: {reason}"
            error = OperationFailed(why, hint=hint)
            yield ItemResult(item.target, Status.PARTIAL, error=error.as_json()) if count else failed(item, error)
        else:
            yield ItemResult(item.target, Status.DONE, value={"records": count, "tombstones": content["tombstones"]})


def read_back_judged(result: ItemResult, wrong: Mapping[str, str]) -> ItemResult:
    """Return a result, failed where its partition was read back different.

    :param wrong: the partitions that were, and how; empty where that is not known
    """
    if result.status is not Status.DONE or result.target not in wrong:
        return result
    how = f": {wrong[result.target]}" if wrong[result.target] else ""
    error = VerificationFailed(
        f"{result.target} was read back different from what was written{how}",
        hint="something else writes to this changelog: make sure that the application is stopped everywhere, then run the command again",
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())
