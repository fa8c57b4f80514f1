"""The workers of the context, each asked for itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kops.core.errors import KopsError, UsageProblem
from kops.gateways.connect import Connect
from kops.gateways.connect.workers import without_login
from kops.operations.services import Services

_AT_ONCE = 8


def worker_rows(services: Services) -> list[dict[str, Any]]:
    """Query each address of ``connect_urls`` separately; ``problem`` says why one does not answer.

    :raises UsageProblem: when the context has no Connect
    """
    urls = services.connection.connect_urls
    if not urls:
        raise UsageProblem("no Connect worker is known", hint="set connect_urls in the context, or KOPS_CONNECT_URLS")

    def row(url: str) -> dict[str, Any]:
        found: dict[str, Any] = {"url": without_login(url), "version": None, "commit": None, "kafka_cluster_id": None, "problem": None}
        try:
            about = Connect(replace(services.connection, connect_urls=(url,))).about()
        except KopsError as error:
            return {**found, "problem": error.message}
        return {**found, **{key: about.get(key) for key in ("version", "commit", "kafka_cluster_id")}}

    with ThreadPoolExecutor(min(_AT_ONCE, len(urls))) as pool:
        return list(pool.map(row, urls))
