"""``kops doctor``, and what the sandbox says on a machine where something is missing."""

import sys

import pytest

from kops.config.paths import directories
from kops.gateways.machine.jars import kafka_set


def by_name(outcome):
    return {check["name"]: check for check in outcome.json}


@pytest.mark.usefixtures("kafka_jar_files")
def test_doctor_shows_what_is_present(run_kops):
    found = by_name(run_kops("doctor", "-o", "json"))
    jars = ["kafka jars", "spark-kafka jars", "connect jars", "registry"]
    assert list(found) == ["python", "extra state", "extra schemas", "extra connect", "java", "javac", *jars, "disk", "configuration"]
    assert (found["kafka jars"]["status"], found["kafka jars"]["hint"]) == ("ok", None)
    assert sys.executable in found["python"]["found"]


def test_doctor_reports_missing_jars_without_fetching(run_kops, monkeypatch, tmp_path):
    monkeypatch.setenv("KOPS_CACHE_DIR", str(tmp_path / "cold"))
    outcome = run_kops("doctor", "-o", "json")
    found = by_name(outcome)
    assert outcome.code == 1
    assert {found["kafka jars"]["status"], found["spark-kafka jars"]["status"]} == {"missing"}
    assert {found[name]["status"] for name in ("connect jars", "registry")} == {"optional"}
    assert "kops doctor --fetch connect" in found["connect jars"]["found"]
    assert outcome.err.count("kops doctor --fetch") == 1
    assert not (tmp_path / "cold" / "jars").exists()


def test_doctor_fetch_without_network_fails(run_kops, monkeypatch, tmp_path, jdk):
    monkeypatch.setenv("KOPS_CACHE_DIR", str(tmp_path / "cold"))
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    outcome = run_kops("doctor", "--fetch", "-o", "json")
    assert outcome.code == 1
    assert "cannot be fetched from http://127.0.0.1:1/" in by_name(outcome)["kafka jars"]["found"]


def test_doctor_checks_jars_directory(run_kops, tmp_path):
    (tmp_path / kafka_set().main_jar).touch()
    found = by_name(run_kops("doctor", "--jars", tmp_path, "-o", "json"))
    assert (found["kafka jars"]["status"], found["spark-kafka jars"]["status"]) == ("ok", "missing")


def test_doctor_names_invalid_configuration(run_kops, home):
    file = directories({"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}).config_file
    file.parent.mkdir(parents=True)
    file.write_text("[contexts.prod]\nbootstrap = 'x'\n")
    found = by_name(run_kops("doctor", "-o", "json"))["configuration"]
    assert found["status"] == "missing"
    assert str(file) in found["found"]


@pytest.fixture(params=["no java on the PATH", "an empty JAVA_HOME", "a JRE", "an old Java"])
def bad_java(request, tmp_path, monkeypatch):
    """A machine without a proper JDK; gives a word of the error."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    if request.param == "no java on the PATH":
        monkeypatch.delenv("JAVA_HOME", raising=False)
        return "there is no java on the PATH"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if request.param == "an empty JAVA_HOME":
        return f"JAVA_HOME is {tmp_path}, but there is no bin/java"
    version = "11.0.2" if request.param == "an old Java" else "17.0.2"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return "is Java 11, and 17 or newer" if request.param == "an old Java" else "there is no javac"


def test_doctor_gives_hint_for_bad_java(run_kops, bad_java):
    outcome = run_kops("doctor", "-o", "json")
    assert outcome.code == 1
    missing = [check for check in outcome.json if check["status"] == "missing" and check["name"] in ("java", "javac")]
    assert any(bad_java in check["found"] for check in missing)
    assert all("install a JDK 17 or newer" in check["hint"] for check in missing)


def test_the_sandbox_needs_java_and_leaves_nothing_without_it(run_kops, sandboxes, monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = run_kops("sandbox", "up")
    assert (outcome.code, outcome.out) == (2, "")
    assert "there is no java on the PATH" in outcome.err
    assert "install a JDK 17 or newer" in outcome.err
    assert not (sandboxes / "sandbox").exists()


def test_the_sandbox_needs_jars_and_leaves_nothing_without_them(run_kops, sandboxes, monkeypatch, tmp_path):
    monkeypatch.setenv("KOPS_CACHE_DIR", str(tmp_path / "cold"))
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    outcome = run_kops("sandbox", "up")
    assert outcome.code == 2
    assert ".jar cannot be fetched from http://127.0.0.1:1/: " in outcome.err
    assert "kops doctor --fetch" in outcome.err
    assert not (sandboxes / "sandbox").exists()
