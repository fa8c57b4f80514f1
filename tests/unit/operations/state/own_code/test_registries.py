"""Which registries a program asks through kops, and as whom."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.config.connection import Connection, Http, Secret
from kops.core.errors import Refused
from kops.core.streams.capture_file import read_capture
from kops.operations.state.own_code.registries import direct_registries, registries_of
from kops.operations.state.own_code.start import ProgramRun

CAPTURED = json.loads((Path(__file__).parents[3] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))


def captured(urls):
    capture = read_capture(CAPTURED, "c.json")
    return replace(capture, settings=replace(capture.settings, given={"schema.registry.url": urls}))


@pytest.fixture
def connection():
    http = Http(registry_username="kops", registry_password=Secret("a test", lambda: "secret"))
    return Connection(("b:1",), registry_url="https://own/api/", http=http, timeout=7.0)


def asked(found):
    return {each.origin.url: (each.bases, "auth" in each.request) for each in found.upstreams}


def test_the_registry_of_the_context_gets_its_login(connection):
    capture = captured("https://own/v7,https://other,http://plain:8081")
    alone = registries_of(capture, connection, alone=True)
    assert asked(alone) == {"https://own": (("/v7", "/api"), True), "https://other": (("",), False), "http://plain:8081": (("",), False)}
    assert {each.request["timeout"] for each in alone.upstreams} == {7.0}
    beside = registries_of(capture, connection, alone=False)
    assert asked(beside) == {"https://own": (("/v7",), True), "http://plain:8081": (("",), False)}
    assert direct_registries(ProgramRun(capture, registries=beside)) == ["https://other"]


def test_code_may_name_the_registry_of_the_context(connection):
    capture = read_capture(CAPTURED, "c.json")
    assert asked(registries_of(capture, connection, alone=True)) == {"https://own": (("/api",), True)}
    assert registries_of(capture, connection, alone=False).upstreams == ()


def test_what_is_no_address_is_refused_without_a_network(connection):
    with pytest.raises(Refused, match=r"setting schema\.registry\.url names a schema registry that is not at an address of HTTP"):
        registries_of(captured("registry:8081"), connection, alone=True)
    assert registries_of(captured("registry:8081"), connection, alone=False).upstreams == ()
