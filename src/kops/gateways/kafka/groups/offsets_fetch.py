"""Committed offsets of many groups in few requests (OffsetFetch version 8, KIP-709), or of one, through kafka-python's connections.

Brokers before Kafka 3.0 take one group per request (version 7).

librdkafka requests each group separately, twice, and creates an object per partition: half the run time of a command over hundreds of
thousands of partitions. And its admin client aborts the process when a broker answers that it is not (or not yet, or no longer) the
coordinator of the group, as brokers do while they start: ``rd_kafka_handle_OffsetFetch`` of 2.16 then asks its consumer group for the
coordinator, and has none.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, answer_or_error
from kops.formats.groups.offset_fetch import OF_ONE_GROUP, VERSION, TopicCommits, read_answer, read_answer_of_one
from kops.gateways.kafka.admin import Wire
from kops.gateways.kafka.client import AGAIN_SECONDS, Client
from kops.gateways.threads import in_thread
from kops.gateways.wire.kafka_python import by_coordinator, forget_coordinators, run, send, undecoded_offset_fetch

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

GROUPS_AT_ONCE = 48
"""Groups per request to their coordinator, which answers while the previous answer is processed."""

Commits = dict[str, list[TopicCommits]]
Found = dict[str, list[TopicCommits] | int]
"""What each group has committed, or the code of the broker's error."""


def fetch_offsets(client: Client, admin: KafkaAdminClient, group_ids: Sequence[str], *, stable: bool) -> Iterator[Commits]:
    """Yield what groups have committed, several groups at a time, in their order.

    Groups for which the broker returns an error are left out, and if a broker does not answer, all that follow: they are to be requested
    one by one, which waits while coordinators move, and reports why one cannot be read.

    :param stable: open transactions that have offsets to commit are an error
    """
    from kafka.errors import KafkaError

    if not group_ids:
        return
    doing = f"read the committed offsets of {len(group_ids)} groups"
    patience = min(AGAIN_SECONDS, client.timeout)
    chunks = [group_ids[start : start + GROUPS_AT_ONCE] for start in range(0, len(group_ids), GROUPS_AT_ONCE)]
    try:
        client.wait(in_thread(lambda: run(admin, by_coordinator, admin, group_ids)), doing, timeout=patience)
        asked = _ask(admin, chunks[0], stable=stable)
        for chunk, following in zip(chunks, [*chunks[1:], None], strict=True):
            answers = client.wait(asked, doing, timeout=patience)
            if following is not None:
                asked = _ask(admin, following, stable=stable)
            known = {name: commits for answer in answers for name, commits in _found(*answer).items() if not isinstance(commits, int)}
            if len(known) < len(chunk):
                forget_coordinators(admin)
            yield {name: known[name] for name in chunk if name in known}
    except (KopsError, KafkaError):
        forget_coordinators(admin)


def fetch_offsets_alone(wire: Wire, group_id: str, *, stable: bool) -> list[TopicCommits] | KopsError:
    """Return what one group has committed, or why that is not known; waits while its coordinator moves."""
    from kafka.errors import for_code

    def ask(admin: KafkaAdminClient) -> list[TopicCommits]:
        (answer,) = run(admin, _asking(admin, [group_id], stable=stable))
        commits = _found(*answer)[group_id]
        if isinstance(commits, int):
            raise for_code(commits)
        return commits

    return answer_or_error(lambda: wire.ask(f"read the committed offsets of group {group_id}", ask, patient=True))


def _found(group_id: str | None, data: bytes) -> Found:
    """Parse an answer.

    :param group_id: the group that it is about; None if it names its groups
    """
    return read_answer(data) if group_id is None else {group_id: read_answer_of_one(data)}


def _ask(admin: KafkaAdminClient, group_ids: Sequence[str], *, stable: bool) -> Future[list[tuple[str | None, bytes]]]:
    """Start to query the coordinators of groups; return their answers, without the headers."""
    return in_thread(lambda: run(admin, _asking(admin, group_ids, stable=stable)))


def _asking(
    admin: KafkaAdminClient, group_ids: Sequence[str], *, stable: bool
) -> Callable[[], Coroutine[Any, Any, list[tuple[str | None, bytes]]]]:
    """Return the coroutine function that queries the coordinators of groups; each answer comes with its group if it is about one only."""
    from kafka.errors import IncompatibleBrokerVersion

    of_many, of_one = undecoded_offset_fetch(VERSION), undecoded_offset_fetch(OF_ONE_GROUP)

    async def ask_all() -> list[tuple[str | None, bytes]]:
        under_way = [
            (
                broker,
                some,
                send(
                    admin,
                    of_many(
                        groups=[of_many.OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in some],
                        require_stable=stable,
                        min_version=VERSION,
                        max_version=VERSION,
                    ),
                    broker,
                ),
            )
            for broker, some in (await by_coordinator(admin, group_ids)).items()
        ]
        answers: list[tuple[str | None, bytes]] = []
        for broker, some, answer in under_way:
            try:
                answers.append((None, (await answer).data))
            except IncompatibleBrokerVersion:
                answers += [(group_id, await alone(broker, group_id)) for group_id in some]
        return answers

    async def alone(broker: int, group_id: str) -> bytes:
        versions = {"min_version": OF_ONE_GROUP, "max_version": OF_ONE_GROUP}
        request = of_one(group_id=group_id, topics=None, require_stable=stable, **versions)
        data: bytes = (await send(admin, request, broker)).data
        return data

    return ask_all
