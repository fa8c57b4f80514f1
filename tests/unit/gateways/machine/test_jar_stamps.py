"""Which jars belong to this kops: in a clone those of these very sources, elsewhere those of its version."""

import pytest

from kops import __version__
from kops.gateways.machine import jar_stamps
from support.stand_in_jars import write_jar

PARTS = (jar_stamps.AGENT, jar_stamps.RUNNER)


@pytest.fixture(params=PARTS)
def part(request):
    return request.param


@pytest.fixture
def clone(tmp_path, monkeypatch):
    java = tmp_path / "java"
    for each in PARTS:
        (java / each).mkdir(parents=True)
        (java / each / "Main.java").write_text("class Main {}")
    (java / "agent_jar.py").write_text("print()")
    monkeypatch.setattr(jar_stamps, "SOURCES", java)
    return java


@pytest.fixture
def jar(tmp_path):
    return tmp_path / "kops.jar"


@pytest.mark.parametrize("changed", ["{}/Main.java", "{}/More.java", "agent_jar.py"])
def test_in_a_clone_a_jar_of_other_sources_does_not_belong(clone, jar, part, changed):
    write_jar(jar, jar_stamps.expected_stamp(part))
    assert jar_stamps.has_our_stamp(jar, part)
    (clone / changed.format(part)).write_text("class Other {}")
    assert not jar_stamps.has_our_stamp(jar, part)


def test_in_a_clone_neither_the_version_alone_nor_the_digest_is_enough(clone, jar, part):
    for half in jar_stamps.expected_stamp(part).split():
        write_jar(jar, half)
        assert not jar_stamps.has_our_stamp(jar, part)


def test_each_part_has_sources_of_its_own(clone, jar):
    (clone / jar_stamps.RUNNER / "Main.java").write_text("class Other {}")
    write_jar(jar, jar_stamps.expected_stamp(jar_stamps.RUNNER))
    assert not jar_stamps.has_our_stamp(jar, jar_stamps.AGENT)


@pytest.mark.parametrize(
    ("carried", "expected"),
    [(f"{__version__} 12ab", True), ("0.0.9 12ab", False), (f"{__version__}1 12ab", False), ("12ab", False), (None, False)],
)
def test_an_installed_kops_takes_jars_of_its_version(tmp_path, monkeypatch, jar, part, carried, expected):
    monkeypatch.setattr(jar_stamps, "SOURCES", tmp_path / "none")
    write_jar(jar, carried)
    assert jar_stamps.has_our_stamp(jar, part) is expected


@pytest.mark.parametrize("content", [None, b"", b"no jar"])
def test_what_is_no_jar_does_not_belong(jar, part, content):
    if content is not None:
        jar.write_bytes(content)
    assert not jar_stamps.has_our_stamp(jar, part)


def test_the_sources_of_this_clone_are_found(part):
    assert jar_stamps.sources(part)
    assert jar_stamps.expected_stamp(part).startswith(f"{__version__} ")
