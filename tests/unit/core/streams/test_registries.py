"""The registries that a program's settings name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture_file import read_capture
from kops.core.streams.registries import Origin, base_of, origin_of, other_registry, redirected, registry_settings

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))


def captured(**given):
    capture = read_capture(CAPTURED, "c.json")
    named = {name.replace("_", "."): value for name, value in given.items()}
    return replace(capture, settings=replace(capture.settings, given={**capture.settings.given, **named}))


@pytest.mark.parametrize(
    ("url", "origin", "shown"),
    [
        ("http://registry", Origin("http", "registry", 80), "http://registry"),
        (" https://us:er@Registry:8443/path ", Origin("https", "registry", 8443), "https://registry:8443"),
        ("http://[::1]:8081", Origin("http", "::1", 8081), "http://[::1]:8081"),
    ],
)
def test_where_an_address_leads(url, origin, shown):
    assert origin_of(url) == origin
    assert origin.url == shown


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://registry", "http://", "http://registry:none", "http://[::1"])
def test_what_is_no_address_of_http(url):
    assert origin_of(url) is None


def test_other_places_keep_logins_and_paths():
    places = {Origin("https", "a", 443): "127.0.1.1:443", Origin("http", "b", 8081): "127.0.0.1:99/token"}
    urls = "https://us:p%40@a/apis/v7/, http://b:8081,http://c:8081/"
    assert redirected(urls, places) == "http://us:p%40@127.0.1.1:443/apis/v7/,http://127.0.0.1:99/token,http://c:8081/"


def test_a_base_has_no_slash_at_its_end():
    assert [base_of(url) for url in ("http://a", "http://a/", "http://a/b/")] == ["", "", "/b"]


@pytest.mark.parametrize(("host", "address"), [("localhost", "127.0.0.1"), ("10.1.2.3", "10.1.2.3"), ("a", None), ("::1", None)])
def test_a_host_may_be_an_address(host, address):
    assert Origin("http", host, 80).address == address


def test_settings_of_any_prefix_name_registries():
    found = registry_settings(
        captured(schema_registry_url=["http://a", "http://b"], default_schema_registry_url="http://c", x_schema_registry_url="mock://d")
    )
    assert found == {"schema.registry.url": "http://a,http://b", "default.schema.registry.url": "http://c"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schema_registry_url": "http://a"}, None),
        ({"main_consumer_apicurio_registry_url": "http://a"}, "Apicurio's own API (main.consumer.apicurio.registry.url)"),
        ({"apicurio_registry_url": "mock:"}, None),
        (
            {"default_value_serde": "com.amazonaws.services.schemaregistry.kafkastreams.AWSKafkaAvroSerde"},
            "AWS Glue (com.amazonaws.services.schemaregistry.kafkastreams.AWSKafkaAvroSerde)",
        ),
    ],
)
def test_other_registries_are_named(given, said):
    assert other_registry(captured(**given)) == said


def test_other_registries_are_found_by_the_serdes_of_topics():
    body = json.dumps(CAPTURED).replace("org.apache.kafka.common.serialization.StringDeserializer", "com.azure.schemaregistry.Of")
    assert other_registry(read_capture(json.loads(body), "c.json")) == "Azure's schema registry (com.azure.schemaregistry.Of)"
