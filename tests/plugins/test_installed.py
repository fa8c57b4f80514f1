"""Plugins as they come: distributions that pip installs beside kops, good ones and broken ones."""

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from kops.core.models import CommittedOffset, TopicPartition
from kops.gateways.kafka import Kafka
from support.patience import HANG_SECONDS

EXTRAS = Path(__file__).parents[2] / "plugins" / "kops-extras"

KEYS = frozenset({"name", "kind", "distribution", "version", "reference", "status", "error"})
"""Of the JSON of ``kops plugins list``, which programs rely on."""
BROKEN = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"
[project]
name = "kops-broken"
version = "9.9"
[tool.setuptools]
py-modules = ["kops_broken", "kops_quits"]
[project.entry-points."kops.commands.v1"]
explode = "kops_broken:command"
quits = "kops_quits:command"
gone = "kops_nowhere:command"
function = "operator:add"
topics = "kops_broken:command"
skew = "kops_broken:command"
[project.entry-points."kops.reducers.v1"]
number = "math:pi"
sum = "operator:add"
[project.entry-points."kops.formats.v1"]
string = "kops_broken:form"
half = "operator:add"
""",
    "kops_broken.py": "import os, pathlib\npathlib.Path(os.environ['MARKER']).touch()\nraise RuntimeError('first line\\nsecond line')\n",
    "kops_quits.py": "raise SystemExit(7)\n",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install both distributions into a folder; return it."""
    work, target = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("installed")
    shutil.copytree(EXTRAS, work / "extras", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    (work / "broken").mkdir()
    for name, text in BROKEN.items():
        (work / "broken" / name).write_text(text, "utf-8")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(work / "extras"), str(work / "broken")], check=True, timeout=HANG_SECONDS
    )
    return target


@pytest.fixture
def kops(installed, home):
    def run(*arguments, **environment):
        variables = {**os.environ, "PYTHONPATH": str(installed), "MARKER": str(home / "imported"), **environment}
        command = [sys.executable, "-m", "kops", *map(str, arguments)]
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, stdin=subprocess.DEVNULL
        )

    return run


def statuses(outcome):
    assert outcome.returncode == 0, outcome.stderr
    return {(row["distribution"], row["kind"], row["name"]): row for row in json.loads(outcome.stdout)}


def test_list_says_what_can_be_used_and_why_not(kops):
    found = statuses(kops("plugins", "list", "-o", "json"))
    assert {frozenset(row) for row in found.values()} == {KEYS}
    assert {name: row["status"] for (distribution, _, name), row in found.items() if distribution == "kops-extras"} == {
        "skew": "hidden",
        "merge-patch": "ok",
        "uuid-binary": "ok",
    }
    broken = {name: (row["status"], row["error"]) for (distribution, _, name), row in found.items() if distribution == "kops-broken"}
    assert broken == {
        "explode": ("error", "RuntimeError: first line"),
        "quits": ("error", "SystemExit: 7"),
        "gone": ("error", "ModuleNotFoundError: No module named 'kops_nowhere'"),
        "function": ("error", "a click.Command is expected, this is builtin_function_or_method"),
        "topics": ("hidden", "kops has a command of that name, which takes precedence"),
        "skew": ("error", "RuntimeError: first line"),
        "number": ("error", "math:pi is not a reducer but a float"),
        "sum": ("hidden", "kops has a reducer of that name, which takes precedence"),
        "string": ("hidden", "kops has a format of that name, which takes precedence"),
        "half": ("error", "a format with name, encode, parse, decode and show is expected, this is builtin_function_or_method"),
    }
    assert found["kops-extras", "command", "skew"]["error"] == "kops-broken has a command of that name, which takes precedence"
    assert found["kops-extras", "command", "skew"]["version"] == "0.1.0"


def test_a_hidden_or_broken_plugin_is_a_warning(kops):
    found = kops("plugins", "list")
    assert found.returncode == 0
    assert max(map(len, found.stdout.splitlines())) < 80
    warnings = [line for line in found.stderr.splitlines() if line.startswith("kops: warning: ")]
    assert len(warnings) == 11, found.stderr
    assert any("plugin topics (command) of kops-broken 9.9" in line and "takes precedence" in line for line in warnings)


def test_a_broken_command_is_one_line_and_an_unknown_command(kops):
    found = kops("explode")
    assert found.returncode == 2
    assert "kops: warning: plugin explode (command) of kops-broken 9.9 cannot be used: RuntimeError: first line" in found.stderr
    assert "KOPS_DISABLED_PLUGINS=explode" in found.stderr
    assert "No such command 'explode'" in found.stderr
    assert "Traceback" not in found.stderr
    assert "warning" not in kops("explode", KOPS_DISABLED_PLUGINS="explode").stderr


def test_disabling_one_lets_the_next_of_that_name_be_used(kops):
    found = statuses(kops("plugins", "list", "-o", "json", KOPS_DISABLED_PLUGINS="kops-broken, other"))
    assert found["kops-extras", "command", "skew"]["status"] == "ok"
    assert {row["status"] for (distribution, _, _), row in found.items() if distribution == "kops-broken"} == {"disabled"}
    assert "Show which partitions" in kops("skew", "--help", KOPS_DISABLED_PLUGINS="kops-broken").stdout
    everything = statuses(kops("plugins", "list", "-o", "json", KOPS_DISABLED_PLUGINS="all"))
    assert {row["status"] for row in everything.values()} == {"disabled"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["plugins", "--help"], ["topics", "--help"], ["merge-patch"]])
def test_plugins_are_imported_on_demand(kops, home, arguments):
    kops(*arguments)
    assert not (home / "imported").exists()


def test_reducers_and_formats_are_found_by_name(installed, monkeypatch):
    monkeypatch.syspath_prepend(str(installed))
    from kops.core.errors import ConfigError, UsageProblem
    from kops.core.statefile.reducers import fold, load_reducer
    from kops.plugins.loader import load_format, reducer_reference

    reference = reducer_reference("merge-patch")
    assert reference == "kops_extras.merge_patch:merge_patch"
    assert reducer_reference("some.module:attribute") == "some.module:attribute"
    changes = [({"name": "Ada", "city": "London"}, 5), ({"city": None, "born": 1815}, 3)]
    assert fold(load_reducer(reference), "k", changes).value == {"name": "Ada", "born": 1815}
    assert load_format("uuid-binary").decode(bytes(16)) == "00000000-0000-0000-0000-000000000000"
    assert load_format("string").decode(b"x") == "x"
    with pytest.raises(ConfigError, match=r"plugin half \(format\) of kops-broken 9.9 cannot be used"):
        load_format("half")
    with pytest.raises(UsageProblem, match="there is no format 'uuid-binray'") as caught:
        load_format("uuid-binray")
    assert "did you mean uuid-binary?" in caught.value.hint
    with pytest.raises(ConfigError, match="there is no reducer 'merge'") as caught:
        reducer_reference("merge")
    assert "merge-patch" in caught.value.hint


@pytest.mark.broker
def test_the_command_and_the_format_on_a_real_topic(kops, broker, topic):
    name = topic(partitions=2, config={"cleanup.policy": "compact"})
    producer = Producer(broker.client)
    for number in range(40):
        producer.produce(name, b"v", bytes(15) + bytes([number % 4 if number < 30 else 9]), int(number >= 30))
    producer.flush(HANG_SECONDS)
    shared = ["-B", broker.bootstrap_servers, "-o", "json"]
    found = kops("skew", name, *shared, "--key", "uuid-binary", "--last", 8, KOPS_DISABLED_PLUGINS="kops-broken")
    assert found.returncode == 0, found.stderr
    assert "partition 0 has 1.5 times its even share of the offsets (75% of the topic)" in found.stderr
    first, second = json.loads(found.stdout)
    assert (first["partition"], first["offsets"], first["share"], first["sampled"], first["keys"]) == (0, 30, 0.75, 8, 4)
    assert (second["hottest_key"], second["hottest_share"]) == ("00000000-0000-0000-0000-000000000009", 1.0)
    rows = json.loads(kops("changelog", "inspect", name, *shared, "--key", "uuid-binary").stdout)
    assert sorted(row["key"][-1] for row in rows) == ["0", "1", "2", "3", "9"]


FORMATS_STATE = """\
application: {application}
streams: {{version: "4.3"}}
stores:
  by-key:
    from: {{topic: {keys}, key: uuid-binary, value: string}}
    where: key != '00000000-0000-0000-0000-000000000000'
    aggregate: {{count: true}}
  by-value:
    from: {{topic: {values}, key: string, value: uuid-binary}}
    key_by: substring(value, 36, 1)
    aggregate: {{count: true}}
"""


@pytest.mark.broker
@pytest.mark.spark
def test_a_format_decodes_the_input_of_a_state(kops, broker, topic, unique, tmp_path):
    """Keys stay the 16 bytes that they are; expressions see the text; what is not of the format is undecodable."""
    keys, values, application = topic("keys"), topic("values"), unique("app")
    changelogs = [topic(name=f"{application}-{store}-changelog", config={"cleanup.policy": "compact"}) for store in ("by-key", "by-value")]
    topic(name=f"{application}-by-value-repartition")
    producer = Producer(broker.client)
    for number in range(30):
        some = bytes(15) + bytes([number % 3])
        producer.produce(keys, b"v", some, 0, timestamp=1_760_000_000_000 + number)
        producer.produce(values, some, b"k", 0, timestamp=1_760_000_000_000 + number)
    producer.produce(values, b"short", b"k", 0, timestamp=1_760_000_000_100)
    assert producer.flush(HANG_SECONDS) == 0
    ends = {TopicPartition(keys, 0): CommittedOffset(30), TopicPartition(values, 0): CommittedOffset(31)}
    assert set(Kafka(broker.connection).groups.commit(application, ends).values()) == {None}
    file = tmp_path / "state.yaml"
    file.write_text(FORMATS_STATE.format(application=application, keys=keys, values=values))
    done = kops("state", "rebuild", file, "--on-error", "skip", "--accept-doubtful", "--yes", "-B", broker.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    assert " doubtful" in done.stderr
    assert "its keys are uuid-binary: where the application's serde writes them in other bytes, they are other keys" in done.stderr
    assert "uuid-binary is a plugin's format, the application's serde written again in Python" in done.stderr
    found = [{key: (at, *struct.unpack(">q", value)) for key, value, at in written(broker, changelog)} for changelog in changelogs]
    last = {number: 1_760_000_000_000 + 27 + number for number in range(3)}
    assert found[0] == {bytes(15) + bytes([number]): (last[number], 10) for number in (1, 2)}
    assert found[1] == {b"%d" % number: (last[number], 10) for number in range(3)}


def written(broker, name):
    """Return the records of a topic of one partition."""
    consumer = Consumer({**broker.client, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([Place(name, 0, 0)])
    while not (message := consumer.poll(HANG_SECONDS)).error():
        yield message.key(), message.value(), message.timestamp()[1]
    consumer.close()
