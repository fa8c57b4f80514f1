"""What a change of an application's state consists of: topics to create, records to write, offsets to commit. The arguments of plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Arguments, Json, Plan
from kops.operations.offsets.items import committed_json, committed_of_json, offset_of, partition_of
from kops.operations.state.internal_topics import TopicChange, changes_json, changes_of_json

GROW = "grow"
Contents = Mapping[int, Mapping[str, int]]
"""By partition: number of records and tombstones, both halves of the sum of their hashes, and the earliest and latest timestamp
(``kops.spark.staging.stage.Content``, ``kops.spark.reading.snapshot.Held``).
"""


@dataclass(frozen=True)
class StoreWrite:
    """What is written to a store's changelog.

    :param stage: path or URI of the staged records
    :param contents: of what is written; empty: nothing is
    :param backwards: write what undoes the stage
    :param in_order: write the records of a partition in the order of their timestamps
    :param with_headers: the records have headers; they are staged in the format of a snapshot
    :param staged_headers: the records have headers, which the rows of the stage have too
    :param prior_stage: what a changelog that is recreated held before; empty: nothing, or it is not recreated
    :param facts: what else the plan shows, such as how exact the result is
    """

    changelog: str
    stage: str
    contents: Contents = field(default_factory=dict)
    backwards: bool = False
    in_order: bool = False
    with_headers: bool = False
    staged_headers: bool = False
    prior_stage: str = ""
    prior_contents: Contents = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(content["records"] for content in self.contents.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "changelog": self.changelog,
            "stage": self.stage,
            "backwards": self.backwards,
            "in_order": self.in_order,
            "with_headers": self.with_headers,
            **({"staged_headers": True} if self.staged_headers else {}),
            **self.facts,
            "contents": _contents_json(self.contents),
            "prior_stage": self.prior_stage,
            "prior_contents": _contents_json(self.prior_contents),
        }

    @classmethod
    def of_json(cls, body: Mapping[str, Any]) -> StoreWrite:
        names = ("changelog", "stage", "backwards", "in_order", "with_headers", "staged_headers", "prior_stage")
        given = {name: body[name] for name in names if name in body}
        return cls(
            **given,
            contents=_contents_of_json(body["contents"]),
            prior_contents=_contents_of_json(body["prior_contents"]),
            facts={name: value for name, value in body.items() if name not in _STORE_FIELDS},
        )


@dataclass(frozen=True)
class StateArguments(Arguments):
    """What a change of state does, in this order: topics, stores, grow, commit.

    :param application: ``application.id``, the group whose offsets are committed
    :param master: Spark's
    :param topics: internal topics to be created, deleted or recreated
    :param grow: input topic -> its new number of partitions
    :param commit: None: the commit is deleted
    :param prior: what was committed for the same partitions before
    :param committed_before: all commits from before a move to another number of partitions
    :param repartitions: the repartition topics among ``topics``
    :param open: what is left to do before the application is started, one sentence each
    :param is_undo: it undoes an earlier change
    :param state_file: path
    :param offsets_of: the application whose offsets are committed; another one with ``--into``
    :param facts: what else the plan shows
    """

    application: str
    exactly_once: bool
    master: str
    stores: Mapping[str, StoreWrite]
    topics: tuple[TopicChange, ...] = ()
    grow: Mapping[str, int] = field(default_factory=dict)
    commit: Mapping[TopicPartition, CommittedOffset | None] = field(default_factory=dict)
    prior: Mapping[TopicPartition, CommittedOffset | None] = field(default_factory=dict)
    committed_before: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    repartitions: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    is_undo: bool = False
    state_file: str = ""
    offsets_of: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changelogs(self) -> set[str]:
        return {store.changelog for store in self.stores.values()}

    @property
    def topics_to_change(self) -> set[str]:
        """The topics that are still to be created, recreated or deleted."""
        return {change.name for change in self.topics if not change.done}

    def with_commits(
        self, wanted: Mapping[TopicPartition, CommittedOffset], committed: Mapping[TopicPartition, CommittedOffset]
    ) -> StateArguments:
        """Return the same change with the offsets to commit, except those that are committed already."""
        commit = {at: found for at, found in wanted.items() if offset_of(committed.get(at)) != found.offset}
        return replace(self, commit=commit, prior={at: committed.get(at) for at in commit})

    def as_json(self) -> Json:
        return {
            "application": self.application,
            "state_file": self.state_file,
            "exactly_once": self.exactly_once,
            "master": self.master,
            **self.facts,
            **({"offsets_of": self.offsets_of} if self.offsets_of else {}),
            "topics": changes_json(self.topics),
            "stores": {name: store.as_json() for name, store in self.stores.items()},
            GROW: dict(self.grow),
            "commit": commits_json(self.commit),
            "prior": commits_json(self.prior),
            "committed_before": commits_json(self.committed_before),
            "repartitions": list(self.repartitions),
            "open": list(self.open),
            "takes_back": self.is_undo,
        }

    @classmethod
    def of_json(cls, body: Json) -> StateArguments:
        before = committed_of_json(body["committed_before"])
        return cls(
            application=body["application"],
            exactly_once=body["exactly_once"],
            master=body["master"],
            stores={name: StoreWrite.of_json(store) for name, store in body["stores"].items()},
            topics=tuple(changes_of_json(body["topics"])),
            grow=dict(body[GROW]),
            commit=committed_of_json(body["commit"]),
            prior=committed_of_json(body["prior"]),
            committed_before={at: found for at, found in before.items() if found is not None},
            repartitions=tuple(body["repartitions"]),
            open=tuple(body["open"]),
            is_undo=body["takes_back"],
            state_file=body["state_file"],
            offsets_of=body.get("offsets_of", ""),
            facts={name: value for name, value in body.items() if name not in _FIELDS},
        )


_STORE_FIELDS = {*StoreWrite.__dataclass_fields__} - {"facts"}
_FIELDS = {*StateArguments.__dataclass_fields__, "takes_back"} - {"facts", "is_undo"}


def arguments_of(plan: Plan) -> StateArguments:
    """Return the arguments of a plan that was read from a file or the journal."""
    arguments: StateArguments = plan.typed(StateArguments).arguments
    return arguments


def commits_json(commits: Mapping[TopicPartition, CommittedOffset | None]) -> dict[str, Any]:
    return {str(partition): committed_json(found) for partition, found in commits.items()}


def log_starts(arguments: StateArguments, changelog_ends: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Return the offset at which each changelog partition will get its first new record.

    :param changelog_ends: log end offsets of the changelogs that are not created first
    """
    starts = {partition_of(target): end for target, end in changelog_ends.items()}
    made = (change.after for change in arguments.topics if change.after and not change.done)
    return starts | {TopicPartition(topic.name, number): 0 for topic in made for number in range(topic.partitions or 0)}


def _contents_json(contents: Contents) -> dict[str, dict[str, int]]:
    return {str(number): dict(content) for number, content in sorted(contents.items())}


def _contents_of_json(body: Mapping[str, Mapping[str, int]]) -> dict[int, dict[str, int]]:
    return {int(number): dict(content) for number, content in body.items()}
