"""The YAML that README, docs and plugins show is taken by what reads such files."""

import re
import textwrap
from pathlib import Path

import pytest

from kops.config.yaml_files import parse_documents
from kops.core import quotas
from kops.core.statefile import parse_state_file
from kops.operations.connect import files as connectors
from kops.operations.folder import kinds, manifest
from kops.operations.topics import declared as topics

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "plugins").glob("*/README.md")))
SAMPLES = [
    pytest.param(textwrap.dedent(text), id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]
FORMATS = ("json", "uuid-binary")
COUNTED = {"aggregate": {"count": True}}
SOURCE = {"from": {"topic": "t", "key": "string", "value": "string"}}


def state_files(text):
    """Return what a sample says of a state file, with what a part of one leaves out."""
    if text.startswith("from:"):  # sources, one a line
        stores = [{"one": {**body, **COUNTED}} for line in text.splitlines() for body in parse_documents(line, "sample")]
        return [{"stores": each} for each in stores]
    (body,) = parse_documents(text, "sample")
    return [body if "stores" in body else {"stores": body}]


@pytest.mark.parametrize("text", SAMPLES)
def test_a_sample_is_taken(text, tmp_path):
    file = tmp_path / "sample.yaml"
    file.write_text(text, encoding="utf-8")
    if "owner:" in text:
        file.rename(tmp_path / manifest.FILE)
        assert manifest.read_manifest(tmp_path, kinds.NAMES).needed_owner()
    elif "quotas:" in text:
        assert quotas.parse_documents([("sample", body) for body in parse_documents(text, "sample", as_written=True)])
    elif "partitions:" in text:
        assert topics.read_declaration([str(file)]).topics
    elif "connector.class" in text:
        assert connectors.read_declaration([str(file)]).connectors
    else:
        for body in state_files(text):
            streams = body.get("streams", {})
            complete = {"application": "app", **body, "streams": streams if "library" in streams else {"version": "4.3", **streams}}
            complete["stores"] = {name: {**SOURCE, **store} for name, store in body["stores"].items()}
            assert parse_state_file("sample.yaml", complete, lambda: FORMATS).stores
