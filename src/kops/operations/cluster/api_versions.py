"""`kops cluster api-versions`: the versions of requests that brokers support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kops.core.errors import KopsError
from kops.operations.cluster.observe import Gaps
from kops.operations.services import Services


def api_version_rows(services: Services) -> tuple[list[dict[str, Any]], Mapping[str, KopsError]]:
    """Return a row per request and range of versions, with the brokers that support it, and the brokers that did not answer."""
    gaps, details = Gaps(), services.kafka.details
    found = gaps.answered("requests", details.api_versions_or_errors(broker.id for broker in services.kafka.cluster().brokers))
    names = details.request_names()
    holders: dict[tuple[int, int, int], list[int]] = {}
    for broker, versions in sorted(found.items()):
        for key, (least, most) in versions.items():
            holders.setdefault((key, least, most), []).append(broker)
    rows = [
        {"key": key, "request": names.get(key), "min_version": least, "max_version": most, "brokers": brokers}
        for (key, least, most), brokers in sorted(holders.items())
    ]
    return rows, gaps.errors
