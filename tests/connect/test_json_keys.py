"""The keys of connect's JSON are a contract, as those of every other command: `json_keys.yaml` pins them."""

from pathlib import Path

import pytest
import yaml

from support.connect import FILE_SINK
from support.json_keys import keys_of

pytestmark = pytest.mark.broker

PINNED: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "json_keys.yaml").read_text(encoding="utf-8"))
OF_THE_CONNECTOR = ("config", "partition", "offset")
"""What is inside is the connector's own."""
RUNS = {
    "plugins list": "",
    "plugins describe": "FileStreamSink",
    "workers": "",
    "list": "{sink}",
    "status": "{sink} {lacking}",
    "status --trace": "{sink} {lacking}",
    "describe": "{sink}",
    "validate": "{folder}/wrong.yaml",
    "diff": "{folder}/other.yaml",
    "apply": "{folder}/other.yaml --dry-run",
    "pause": "{sink} --dry-run",
    "resume": "{sink} --yes",
    "stop": "{sink} --dry-run",
    "restart": "{sink} --yes",
    "alter": "{sink} --config tasks.max=2 --dry-run",
    "delete": "{sink} --dry-run",
    "offsets show": "{sink}",
    "offsets alter": "{sink} {topic}:0=start --dry-run",
    "offsets reset": "{source} --dry-run",
    "loggers list": "root",
    "loggers set": "some.logger --level INFO --yes",
}


def test_the_keys_are_those_that_programs_know(kops, pipeline, connectors, unique, tmp_path, until):
    connectors(unique("lacking"), {"connector.class": FILE_SINK, "file": str(tmp_path / "none"), "topics": unique("absent")})
    (tmp_path / "wrong.yaml").write_text(f"name: wrong\nconnector.class: {FILE_SINK}\n")
    (tmp_path / "other.yaml").write_text(f"name: {pipeline.sink}\nconnector.class: {FILE_SINK}\ntopics: {pipeline.name}\nfile: other\n")
    until("offsets to be committed", lambda: len(kops("offsets", "show", pipeline.sink, pipeline.source, "-o", "json").json) == 2)
    scene = {"sink": pipeline.sink, "source": pipeline.source, "topic": pipeline.name, "folder": tmp_path, "lacking": connectors.made[-1]}
    found = {}
    for command, arguments in RUNS.items():
        done = kops(*command.split(), *(word.format(**scene) for word in arguments.split()), "-o", "json")
        assert done.out, (command, done.err)
        found[command] = sorted({key for key in keys_of(done.out) if not key.split(".")[0].startswith(OF_THE_CONNECTOR)})
    assert found == PINNED, yaml.safe_dump(found, sort_keys=False)
