"""Names of connectors that no request reaches: kops creates none, and says why where there is one."""

import contextlib
import json
from urllib.parse import quote

import pytest
import requests
from confluent_kafka import Producer

from kops.config.connection import Connection
from kops.gateways.connect import Connect
from support.connect import FILE_SOURCE
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker
NAMES = (
    *("{}", "{} and", "{}.", "..{}", "{};v=1", "{}?", "{}#", "{}+:*$", 'q"{}', "{}é日本", "{}\u200b", "{}[0]"),
    *("{}/eur", "{}%2Fb", "{}%", "{}\\slash", "{}//b", "/{}", "{}/../b", "{}\t", "{}\n", "{}\x7f", "{}\x85", "{}\x00", " {}", "{} "),
)


@pytest.fixture
def remove(connect_workers, broker):
    """Remove connectors by the workers' topic of configurations, which is all that reaches some of them."""
    made = []
    yield made.append
    producer = Producer(broker.client)
    for name in made:
        producer.produce(f"{connect_workers.cluster.group}-configs", None, f"connector-{name}".encode(), partition=0)
    assert producer.flush(HANG_SECONDS) == 0


def listed_everywhere(workers, name):
    """Whether each worker lists a connector with its state: one hears of what another created only after a while. Connect trims names."""
    kept = name.strip("".join(map(chr, range(33))))
    return all(kept in requests.get(f"{url}/connectors?expand=status", timeout=HANG_SECONDS).json() for url in workers.urls)


def answered(until, method, url, **given):
    """Return the answer to a request, which is asked again while workers expect a rebalance: 409, or 500 with these words."""
    answers = []

    def settled():
        answers.append(requests.request(method, url, timeout=HANG_SECONDS, **given))
        return "rebalance is expected" not in answers[-1].text

    until("the workers to settle", settled)
    return answers[-1]


@pytest.mark.parametrize("pattern", NAMES, ids=ascii)
def test_obstacle_is_what_connect_does(connect_workers, unique, tmp_path, remove, until, pattern):
    name, url = pattern.format(unique("name")), connect_workers.url
    config = {"name": name, "connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "none"}
    obstacle = Connect(Connection(("b:1",), connect_urls=(url,), timeout=HANG_SECONDS)).obstacle(name)
    created = answered(until, "POST", f"{url}/connectors", json={"name": name, "config": config}).status_code == 201
    if created:
        remove(name)
        until("it to be listed", lambda: listed_everywhere(connect_workers, name))
    asked = answered(until, "GET", f"{url}/connectors/{quote(name, safe='')}/config")
    reached = asked.status_code == 200 and asked.json().get("name") == name
    if reached:
        requests.delete(f"{url}/connectors/{quote(name, safe='')}", timeout=HANG_SECONDS)
    if created:
        assert (obstacle is None) == reached, (asked.status_code, asked.text)


def test_apply_refuses_what_it_could_not_change(kops, connect_workers, unique, tmp_path):
    names = [".", "..", f"{unique('pay')}/eur", f"{unique('back')}\\slash", f"{unique('half')}\ud83d"]
    file = tmp_path / "connectors.json"
    common = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "none"}
    file.write_text(json.dumps([{"name": name, **common} for name in names]))
    rows = kops("validate", file, "-o", "json")
    assert (rows.code, {row["connector"] for row in rows.json if row["setting"] == "name"}) == (2, set(names))
    for options in ((), ("--no-validate",)):
        refused = kops("apply", file, "--yes", *options)
        assert (refused.code, "could be created, but not changed or deleted" in refused.err) == (2, True)
    assert not {*names} & {*connect_workers.ask("GET", "/connectors")}


def test_one_that_others_created_is_named_as_what_it_is(kops, connect_workers, unique, tmp_path, remove, until):
    name = f"{unique('pay')}/eur"
    config = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "none"}
    connect_workers.ask("POST", "/connectors", {"name": name, "config": config})
    until("it to be listed", lambda: listed_everywhere(connect_workers, name))
    refused = kops("pause", name, "--yes", "-o", "json")
    (item,) = refused.json["items"]
    assert (refused.code, item["status"]) == (1, "failed")
    assert f"no request reaches connector {name}: the server does not take this name" in item["error"]["message"]
    assert "config.storage.topic" in item["error"]["hint"]
    remove(name)


def test_dot_names_never_reach_another_connector(kops, connectors, connect_workers, tmp_path):
    """``DELETE /connectors/./offsets`` is sent as ``/connectors/offsets``, and deletes a connector of that name."""
    connectors("offsets", {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "none"})
    client = Connect(Connection(("b:1",), connect_urls=connect_workers.urls, timeout=HANG_SECONDS))
    with contextlib.suppress(Exception):
        client.reset_offsets(".")
    assert "offsets" in connect_workers.ask("GET", "/connectors")
