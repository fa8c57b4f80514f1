"""What cannot be written as it is, told before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.reading.contents import Content
    from kops.spark.reading.snapshot import Held


def refuse_time_zero(
    services: Services, topic: str, contents: Iterable[Content | Held], *, exactly_once: bool, headers: bool = False
) -> None:
    """Refuse a timestamp of 0 where only librdkafka can write: to it, 0 means now.

    :raises Refused: naming the topic
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.staging.writer import Target, writes_time_zero

    earliest = min((content.earliest for content in contents if content.records), default=1)
    target = Target(topic, librdkafka_settings(services.connection), "" if exactly_once else None, headers=headers)
    if earliest <= 0 and not writes_time_zero(target):
        raise Refused(
            f"{topic} has a record with the timestamp 0, which cannot be written in a transaction, or over this connection",
            hint="rebuild the store by reprocessing",
        )
