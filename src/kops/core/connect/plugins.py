"""Where common connector plugins come from. Pure.

Versions were current at the time of writing; ``kops connect plugins add`` accepts newer ones.
"""

from __future__ import annotations

from collections.abc import Mapping

COORDINATES: Mapping[str, str] = {
    "io.debezium.connector.postgresql.": "io.debezium:debezium-connector-postgres:3.6.0.Final",
    "io.debezium.connector.jdbc.": "io.debezium:debezium-connector-jdbc:3.6.0.Final",
    "io.aiven.kafka.connect.s3.": "io.aiven:s3-connector-for-apache-kafka:2.15.0",
}
"""Maven coordinates by the prefix of the class."""
WITH_KAFKA: Mapping[str, str] = {
    "org.apache.kafka.connect.file.": "connect-file",
    "FileStream": "connect-file",
    "org.apache.kafka.connect.mirror.": "connect-mirror",
}
"""Artifacts of Apache Kafka itself, which have its version."""
ELSEWHERE: Mapping[str, str] = {
    "io.aiven.": "the releases of Aiven-Open on GitHub have it",
    "io.confluent.": "Confluent Hub has it",
}
"""Where to get what Maven Central does not have."""
_NEEDS = "it must be on the workers' plugin.path; "
_AGAIN = "then restart them"


def install_hint(plugin: str, kafka_version: str) -> str:
    """Return what to do about a plugin that no worker has.

    :param plugin: its class, or a short form that Connect accepts
    :param kafka_version: of the sandbox's workers
    """
    coordinate = _first(COORDINATES, plugin)
    if artifact := _first(WITH_KAFKA, plugin):
        coordinate = f"org.apache.kafka:{artifact}:{kafka_version}"
    if not coordinate and (place := _first(ELSEWHERE, plugin)):
        return f"{_NEEDS}it is not on Maven Central, {place}; for the sandbox: kops sandbox up --connect --plugins FOLDER-OF-FOLDERS"
    return f"{_NEEDS}for the sandbox: kops connect plugins add {coordinate or 'GROUP:ARTIFACT:VERSION'}, {_AGAIN}"


def _first(places: Mapping[str, str], plugin: str) -> str:
    return next((place for beginning, place in places.items() if plugin.startswith(beginning)), "")
