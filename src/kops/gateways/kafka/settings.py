"""Settings of brokers, groups and client metrics; those of topics are in ``topics``, by confluent-kafka, which knows no other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError
from kops.core.models import Setting
from kops.core.settings import BROKER, CLIENT_METRICS, DEFAULT_BROKER, GROUP, TOPIC, Settings, title
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_TYPES = {TOPIC: 2, BROKER: 4, CLIENT_METRICS: 16, GROUP: 32}
"""``ConfigResource.Type`` of Kafka."""
_SINCE = {CLIENT_METRICS: ("ListConfigResources", 0), GROUP: ("ConsumerGroupDescribe", 1)}
"""Requests, with versions, that came with newer kinds."""
_SET, _DELETE = 0, 1
_SOURCES = {1: TOPIC, 2: BROKER, 3: "broker default", 4: "server.properties", 5: "default", 7: CLIENT_METRICS, 8: GROUP}
"""``DescribeConfigsResponse.ConfigSource`` of Kafka."""

Answers = dict[str, "dict[str, Setting] | KopsError"]


class SettingsRequests:
    """Requests about settings; every method waits for the answer."""

    def __init__(self, client: Client) -> None:
        self._wire = Wire(client)

    def names(self, kind: str) -> list[str]:
        """Return the names of what has settings of a kind (ListConfigResources, Kafka 4.1; for client metrics 3.7)."""
        request = request_class("ListConfigResourcesRequest")(resource_types=[_TYPES[kind]])
        answer = self._wire.ask(f"list the settings of every {kind}", lambda admin: answer_of(admin, request), patient=True)
        resources = answer["config_resources"]
        return sorted(one["resource_name"] for one in resources if one.get("resource_type", _TYPES[kind]) == _TYPES[kind])

    def describe_or_errors(self, kind: str, names: Iterable[str]) -> Answers:
        """Return the settings of each, with the source of every value, or why they are not known.

        A broker is asked for its own; ``DEFAULT_BROKER`` has only the settings that were set for all brokers.
        """
        wanted = list(dict.fromkeys(names))
        self._require(kind, f"describe the settings of {', '.join(title(kind, name) for name in wanted[:3])}")
        asked = {broker: [name] for name in wanted if (broker := _broker(kind, name)) is not None}
        others = [name for name in wanted if _broker(kind, name) is None]
        found: Answers = {}
        answers = self._wire.brokers_or_errors(
            asked, "describe the settings of broker", lambda admin, broker: _describe(admin, kind, asked[broker], broker)
        )
        for broker, answer in answers.items():
            found |= dict.fromkeys(asked[broker], answer) if isinstance(answer, KopsError) else _settings(kind, answer)
        if others:
            doing = f"describe the settings of {', '.join(title(kind, name) for name in others[:3])}"
            found |= _settings(kind, self._wire.ask(doing, lambda admin: _describe(admin, kind, others), patient=True))
        return {name: found[name] for name in wanted}

    def _require(self, kind: str, doing: str) -> None:
        """Look whether the brokers know a kind of settings: those that do not report a request that they cannot read."""
        if kind in _SINCE:
            self._wire.require(doing, *_SINCE[kind])

    def alter(self, kind: str, changes: Mapping[str, Settings], *, validate_only: bool = False) -> dict[str, KopsError | None]:
        """Change settings, leaving all others unchanged; a broker's own are sent to that broker, which checks them first.

        :param validate_only: let the broker check them, and change nothing
        :returns: by name, the error or None
        """
        by_broker: dict[int | None, dict[str, Settings]] = {}
        for name, settings in changes.items():
            by_broker.setdefault(_broker(kind, name), {})[name] = settings
        errors: dict[str, KopsError | None] = {}
        for broker, some in by_broker.items():
            doing = f"alter {', '.join(title(kind, name) for name in some)}"
            send = partial(_alter, kind=kind, changes=some, broker=broker, validate_only=validate_only)
            answer = self._wire.ask(doing, send)
            for one in answer["responses"]:
                name = one["resource_name"]
                errors[name] = translate_error_code(one["error_code"], one.get("error_message"), f"alter {title(kind, name)}")
        return {name: errors[name] for name in changes}


def _broker(kind: str, name: str) -> int | None:
    return int(name) if kind == BROKER and name != DEFAULT_BROKER else None


def _describe(admin: KafkaAdminClient, kind: str, names: Iterable[str], broker: int | None = None) -> dict[str, Any]:
    request = request_class("DescribeConfigsRequest")
    resources = [request.DescribeConfigsResource(resource_type=_TYPES[kind], resource_name=name, configuration_keys=None) for name in names]
    return answer_of(admin, request(resources=resources, include_synonyms=True, min_version=1), broker)


def _alter(
    admin: KafkaAdminClient, *, kind: str, changes: Mapping[str, Settings], broker: int | None, validate_only: bool
) -> dict[str, Any]:
    request = request_class("IncrementalAlterConfigsRequest")
    resource = request.AlterConfigsResource
    resources = [
        resource(
            resource_type=_TYPES[kind],
            resource_name=name,
            configs=[
                resource.AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
                for key, value in settings.items()
            ],
        )
        for name, settings in changes.items()
    ]
    return answer_of(admin, request(resources=resources, validate_only=validate_only), broker)


def _settings(kind: str, answer: Mapping[str, Any]) -> Answers:
    found: Answers = {}
    for one in answer["results"]:
        name = one["resource_name"]
        error = translate_error_code(one["error_code"], one.get("error_message"), f"describe the settings of {title(kind, name)}")
        found[name] = error or {entry["name"]: _setting(entry) for entry in one["configs"]}
    return found


def _setting(entry: Mapping[str, Any]) -> Setting:
    source = entry["config_source"]
    below = [one for one in entry.get("synonyms") or () if one["source"] != source]
    inherited = entry["value"] if _SOURCES.get(source) in ("server.properties", "default") else next((one["value"] for one in below), None)
    return Setting(entry["name"], entry["value"], _SOURCES.get(source, "unknown"), entry["is_sensitive"], inherited, entry["read_only"])
