"""The reference on the site and the man pages have every command with every option, and the site's contents list every page."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

from kops.cli.frame.main import NOUNS

ROOT = Path(__file__).parents[3]


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = _reference()


@pytest.mark.parametrize("noun", NOUNS)
def test_reference_has_each_verb_with_each_option(noun: str) -> None:
    page, manual = REFERENCE.markdown(noun), REFERENCE.man(noun).replace("\\-", "-")
    for context in REFERENCE.contexts(noun):
        assert f"# {context.command_path}\n" in page
        assert context.command_path in manual
        own = [param for param in context.command.params if isinstance(param, click.Option) and not param.hidden]
        for option in [param.opts[-1] for param in own if param.name not in REFERENCE.SHARED and param.name != "help"]:
            assert option in page
            assert option in manual


def test_man_page_of_kops_lists_nouns_and_shared_options() -> None:
    manual = REFERENCE.man_of_all().replace("\\-", "-")
    assert all(f"kops-{noun}" in manual for noun in NOUNS)
    assert "--bootstrap-server" in manual


def test_site_lists_every_page() -> None:
    listed = set(_leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    pages = {str(page.relative_to(ROOT)) for part in ("docs", "examples") for page in (ROOT / part).rglob("*.md")}
    assert pages | {f"docs/reference/{noun}.md" for noun in NOUNS} <= listed


def _leaves(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    return [leaf for below in (part.values() if isinstance(part, dict) else part) for leaf in _leaves(below)]
