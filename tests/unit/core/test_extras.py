"""Extras: what is missing of one, and the command that adds it to an installation made by pipx, uv or pip."""

import importlib.util
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kops.cli.frame.failure import describe
from kops.core import extras
from kops.core.errors import MissingRequirement
from kops.operations.contexts import doctor

DECLARED = [
    "click<9,>=8.2",
    'pyspark<5,>=4.0; extra == "state"',
    'numpy<3,>=1.26; extra == "state"',
    'pandas<3,>=2.0; extra == "state"',
    'kops[state]; extra == "spark"',
    'fastavro<2,>=1.9; extra == "schemas"',
    'kops[state]; extra == "connect"',
    'pyspark[connect]<5,>=4.0; extra == "connect"',
    "kops[state,schemas]; extra == 'all'",
]


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment without PySpark and fastavro, whose kops declares DECLARED."""
    folder = tmp_path / "venvs" / "kops-kafka"
    folder.mkdir(parents=True)
    there = {"numpy", "pyarrow", "google_crc32c", "google.protobuf", "jsonschema", "pip"}
    monkeypatch.setattr(extras, "installed", lambda module: module in there)
    monkeypatch.setattr(extras, "_declared", lambda: DECLARED)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "executable", f"{folder}/bin/python")
    return folder, there


def test_extra_requirements_include_nested_extras(environment):
    assert extras.requirements("state") == extras.requirements("spark") == ["pyspark<5,>=4.0", "numpy<3,>=1.26", "pandas<3,>=2.0"]
    assert extras.requirements("connect") == ["pyspark[connect]<5,>=4.0", "numpy<3,>=1.26", "pandas<3,>=2.0"]
    assert extras.requirements("all") == ["pyspark<5,>=4.0", "numpy<3,>=1.26", "pandas<3,>=2.0", "fastavro<2,>=1.9"]


def test_install_command_adds_only_missing_requirements(environment):
    folder, there = environment
    assert extras.how_to_add("state") == f"add it with: {folder}/bin/python -m pip install 'pyspark<5,>=4.0' 'pandas<3,>=2.0'"
    there.add("pyspark")
    there.add("pandas")
    assert "'pyspark[connect]<5,>=4.0' 'numpy<3,>=1.26' 'pandas<3,>=2.0'" in extras.how_to_add("connect")


def test_install_command_uses_pipx_inject(environment):
    folder, _ = environment
    (folder / "pipx_metadata.json").touch()
    assert extras.how_to_add("schemas") == "add it with: pipx inject kops-kafka 'fastavro<2,>=1.9'"


def test_install_command_reinstalls_uv_tool_from_its_source(environment, monkeypatch):
    folder, _ = environment
    (folder / "uv-receipt.toml").touch()
    origin = {"url": "https://example.org/kops.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}

    class Installed:
        def read_text(self, _name):
            return json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed())
    source = "git+https://example.org/kops.git@abc"
    assert extras.how_to_add("schemas") == f"add it with: uv tool install --force --with 'fastavro<2,>=1.9' {source}"
    origin = {"url": "file:///tmp/a folder/kops.whl"}
    assert extras.command_to_add(["a"]) == "uv tool install --force --with a '/tmp/a folder/kops.whl'"
    environment[1].add("pyspark")  # what is there already would be gone
    environment[1].add("pandas")
    kept = "--with 'pyspark<5,>=4.0' --with 'numpy<3,>=1.26' --with 'pandas<3,>=2.0'"
    assert extras.command_to_add(["a"]) == f"uv tool install --force {kept} --with a '/tmp/a folder/kops.whl'"


def test_install_command_uses_uv_without_pip(environment):
    folder, there = environment
    there.remove("pip")
    assert extras.command_to_add(["fastavro"]) == f"uv pip install --python {folder}/bin/python fastavro"


def test_missing_extra_is_usage_problem(environment):
    with pytest.raises(MissingRequirement, match="Avro needs the extra 'schemas' of kops, which is not installed") as missing:
        extras.needs("schemas", "Avro needs")
    assert (int(missing.value.exit_code), missing.value.details) == (2, {"extra": "schemas"})
    assert "fastavro" in (missing.value.hint or "")
    extras.needs("schemas", "Protobuf needs", "google.protobuf")  # as on a worker, which has what its records need


def test_failed_import_names_missing_extra(environment):
    body, code = describe(ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql"))
    assert (code, body["code"]) == (2, "missing_requirement")
    assert "the extra 'state' of kops" in str(body["message"])
    body, code = describe(ModuleNotFoundError("No module named 'kops.nowhere'", name="kops.nowhere"))
    assert (code, body["code"]) == (1, "bug")


def test_no_extra_is_missing_in_development():
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pandas", "fastavro")):
        pytest.skip("not all extras are installed here")
    assert [extras.missing_distributions(extra) for extra in extras.MODULES] == [(), (), ()]
    extras.needs("connect", "this needs")


def test_pyproject_declares_what_the_extras_import():
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["optional-dependencies"]
    for extra in (extras.STATE, extras.SCHEMAS):
        assert {extras._name(each) for each in declared[extra]} == {extras.distribution(module) for module in extras.MODULES[extra]}
    bounded = [*project["dependencies"], *(each for some in declared.values() for each in some)]
    assert [each for each in bounded if "<" not in each.partition(";")[0] and not each.startswith("kops[")] == []


def test_doctor_shows_versions_of_extras(monkeypatch):
    there = {"pyspark": "3.5.1", "pyarrow": "26.0.1", "numpy": "2.4.6"}

    def version(name):
        if name not in there:
            raise metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(extras, "installed", lambda _module: True)
    monkeypatch.setattr(metadata, "version", version)
    assert (doctor._extra("state").status, doctor._extra("state").found) == ("missing", "PySpark 3.5.1 is installed, but 4.x is needed")
    for version, untested in (("4.2.1", ""), ("4.3.0", "; Spark 4.3.0 is untested: kops is tested with versions up to 4.2")):
        there["pyspark"] = version
        found = doctor._extra("state")
        versions = f"pyspark {version}, pyarrow 26.0.1, numpy 2.4.6, pandas of unknown version, google-crc32c of unknown version"
        assert (found.status, found.found) == ("ok", versions + untested)
    del there["pyspark"]
    assert doctor._extra("state").status == "ok"


def test_doctor_lists_missing_extra_as_optional(environment):
    found = doctor._extra("schemas")
    assert (found.status, found.hint) == ("optional", None)
    assert found.found.startswith("not installed (fastavro); add it with: ")
