"""Every verb of kops with hostile text: in its errors, and in what Connect, a registry, the journal and files say.

What brokers hold is driven in ``tests/replay/test_strangers_every_verb.py``; a verb that is in neither fails here.
"""

import json
import re

import click
import pytest

from kops.core.plan import Item, Plan
from kops.operations.protocol.journal import Journal
from kops.output.document import DOCUMENT_END, document_head
from kops.sandbox.model import Node, Sandbox, save
from support.stand_in_jars import stand_in
from support.strangers import (
    EVIL,
    HERE,
    HOSTILE,
    OFFSET,
    ON_BROKERS,
    SCHEMA,
    SOURCE,
    UNCONNECTED,
    WITHOUT_STRANGERS,
    assert_harmless,
    every_verb,
    fill,
    hostile_connect,
    hostile_registry,
    hostile_server,
    refusing,
    shown,
)

pytestmark = pytest.mark.slow  # six runs of kops for each verb

VERBS = dict(every_verb())
NOWHERE = ("-B", "127.0.0.1:1", "--timeout", "1")
"""An address where nothing listens."""


def test_every_verb_is_driven_or_shows_nothing_that_strangers_wrote():
    assert set(VERBS) == {*HERE, *ON_BROKERS, *WITHOUT_STRANGERS}
    assert not set(WITHOUT_STRANGERS) & {*HERE, *ON_BROKERS}
    assert not set(HERE) & set(ON_BROKERS)


def named(verb):
    """Fill every argument that the verb takes."""
    return [*verb.split(), *(EVIL for each in VERBS[verb].params if isinstance(each, click.Argument))]


@pytest.mark.parametrize("verb", VERBS)
def test_errors(verb, tmp_path, monkeypatch):
    """An option, a context, and whatever can be named, all hostile."""
    monkeypatch.chdir(tmp_path)
    assert_harmless([*verb.split(), f"--{EVIL}"])
    if verb not in UNCONNECTED:
        assert_harmless([*named(verb), "-c", EVIL], seen=False)  # some miss an option first


@pytest.fixture(scope="module")
def servers():
    with hostile_server(hostile_connect) as connect, hostile_server(hostile_registry) as registry, hostile_server(refusing) as refuses:
        yield {"connect": connect, "registry": registry, "refuses": refuses}


@pytest.fixture
def scene(servers, home, tmp_path, monkeypatch):
    """A home with a configuration, a journal and a sandbox's log, and files, all of them hostile."""
    monkeypatch.setenv("KOPS_CONNECT_URLS", servers["connect"])
    connector = {"name": EVIL, "connector.class": EVIL, EVIL: EVIL, "topics": "t"}
    (tmp_path / "connector.yaml").write_text(json.dumps(connector))
    (tmp_path / "other.yaml").write_text(json.dumps({**connector, EVIL: HOSTILE}))
    (tmp_path / "schema.avsc").write_text(SCHEMA)
    (tmp_path / "client.properties").write_text(json.dumps(EVIL)[1:-1].replace("=", "") + "=x\n" + "bootstrap.servers=a:1\n")
    config = home / "config" / "kops"
    config.mkdir(parents=True)
    evil = {"bootstrap_servers": ["127.0.0.1:1"], "registry_url": servers["registry"]}
    evil |= {"username": EVIL, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in evil.items()]
    (config / "config.toml").write_text("\n".join(["[contexts.evil]", *lines, "[contexts.broken]", f"{json.dumps(EVIL)} = 1", ""]))
    item = Item(EVIL, "move", 1, EVIL, EVIL)
    plan = Plan("test.recorded", f"change {EVIL}", "id", EVIL, (item,), warnings=(f"it is {EVIL}",), notes=(EVIL,))
    Journal(home / "state" / "kops" / "journal").open(plan)
    sandbox = Sandbox(home / "data" / "kops" / "sandbox" / "sandbox", "sandbox", "4.3.1", "id", (Node(1, 21001, 21002),))
    log = sandbox.log_file(sandbox.nodes[0])
    log.parent.mkdir(parents=True)
    log.write_text(f"{EVIL}\n")
    save(sandbox)
    stand_in(tmp_path, monkeypatch)
    return {"evil": EVIL, "source": SOURCE, "offset": OFFSET, "folder": tmp_path}


@pytest.mark.parametrize(("verb", "at"), [(verb, at) for verb, runs in HERE.items() for at in range(len(runs))])
def test_what_is_shown(scene, verb, at):
    run = HERE[verb][at]
    arguments = [*verb.split(), *fill(run.line, scene), *(("-c", "evil") if verb.startswith("schemas") else ())]
    assert_harmless(arguments, typed=run.typed, seen=run.seen, lines=run.lines, as_json=run.json)


@pytest.mark.parametrize("verb", [verb for verb in HERE if verb.startswith(("connect", "schemas"))])
def test_what_a_refusal_says(scene, servers, verb, monkeypatch):
    monkeypatch.setenv("KOPS_CONNECT_URLS", servers["refuses"])
    monkeypatch.setenv("KOPS_REGISTRY_URL", servers["refuses"])
    assert_harmless([*verb.split(), *fill(HERE[verb][0].line, scene), "--timeout", "2"], seen=verb != "connect plugins add")


TAGS = re.compile(r'</?(?:table|thead|tbody|tr|th|td|pre)(?: style="text-align: right;")?>')


@pytest.mark.parametrize("verb", HERE)
def test_what_is_pasted_into_a_ticket(scene, verb):
    arguments = [*verb.split(), *fill(HERE[verb][0].line, scene), *(("-c", "evil") if verb.startswith("schemas") else ())]
    _, out, err = shown([*arguments, "-o", "html"], HERE[verb][0].typed)
    assert "bug:" not in err
    head = document_head("kops")
    assert out.startswith(head) == out.endswith(DOCUMENT_END) == bool(out)
    assert "<" not in TAGS.sub("", out.removeprefix(head).removesuffix(DOCUMENT_END))
