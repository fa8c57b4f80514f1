"""The pictures of docs/architecture.md, redrawn from the imports of today."""

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree

import grimp
import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture
def architecture(monkeypatch):
    spec = importlib.util.spec_from_file_location("architecture", DOCS / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "architecture", module)  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("kops")


@pytest.mark.parametrize("place", ["kops", "kops.spark"])
def test_no_arrow_runs_upward(architecture, graph, place):
    assert architecture.house_of(graph, place).upward == []


def test_arrows_of_a_circle_run_upward(architecture):
    house = architecture.House("h", dict.fromkeys("abc", (1, 1)), frozenset({("a", "b"), ("b", "c"), ("c", "b")}))
    assert house.floors == {"a": 1, "b": 0, "c": 0}
    assert house.upward == [("b", "c"), ("c", "b")]


def test_every_picture_is_on_the_page_and_names_its_rooms(architecture, graph):
    page = (DOCS / "architecture.md").read_text()
    for name, place in architecture.PICTURES.items():
        house = architecture.house_of(graph, place)
        picture = architecture.drawn(house)
        ElementTree.fromstring(picture)
        assert f"({name}.svg)" in page
        assert all(f">{room.removeprefix(place + '.')}</text>" in picture for room in house.rooms)


def test_the_table_has_the_figures_of_today(architecture, graph):
    page = (DOCS / "architecture.md").read_text()
    for name, place in (
        ("what lies directly in `kops`", "kops"),
        ("directly in `operations`", "kops.operations"),
        ("directly in `spark`", "kops.spark"),
    ):
        house = architecture.house_of(graph, place)
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {name}")]
        assert row.endswith(f"| {len(house.rooms)}, {len(house.arrows)}, {len(house.upward)} |")
