"""What takes a ``Switch`` back: topics, stores, and where their partitions will end before that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kops.core.plan import Plan
from kops.operations.services import Services
from kops.operations.state.engine import start_engine
from kops.operations.state.guard import log_ends
from kops.operations.state.switch_topics import TopicChange, changes_of_json


def undone(change: TopicChange, topic_id: str | None) -> TopicChange | None:
    """Return what takes a change back, as far as it was done."""
    if topic_id is None:
        return TopicChange(None, change.before) if change.before else None
    if topic_id == change.topic_id and not change.done:
        return None
    return change.backwards(topic_id)


def store_back(services: Services, plan: Plan, store: Mapping[str, Any], topics: Sequence[TopicChange]) -> dict[str, Any]:
    """Return a store of the plan that takes it back: its other stage, nothing where the topic goes, or the same stage backwards.

    :param topics: the changes that are taken back; a topic that is still as it was is not among them
    """
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import contents_of, read_stage

    change = next((change for change in changes_of_json(plan.arguments["topics"]) if change.name == store["changelog"]), None)
    if change is not None:
        return {
            **store,
            "stage": store["prior_stage"],
            "prior_stage": store["stage"],
            "contents": store["prior_contents"] if any(found.name == change.name for found in topics) else {},
            "prior_contents": store["contents"],
        }
    if not store["contents"]:
        return dict(store)
    backwards = not store["backwards"]
    records = to_append(read_stage(start_engine(services, plan.arguments["master"]).session, store["stage"]), backwards=backwards)
    contents = {str(number): asdict(content) for number, content in contents_of(records).items()}
    return {**store, "backwards": backwards, "contents": contents}


def ends_after(services: Services, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Return where each changelog partition will end before anything is appended."""
    changes = {change.name: change for change in changes_of_json(arguments["topics"])}
    kept = {store["changelog"] for store in arguments["stores"].values()} - changes.keys()
    ends = {str(partition): end for partition, end in log_ends(services, kept).items()} if kept else {}
    made = (change.after for change in changes.values() if change.after)
    return ends | {f"{topic.name}:{number}": 0 for topic in made for number in range(topic.partitions or 0)}
