"""Jars are fetched once, whole or not at all: the real Ivy, on a Maven repository in a folder."""

import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from kops.core.errors import MissingRequirement, UsageProblem
from kops.gateways.machine import checksums, ivy, jars
from support.maven import Repository
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.usefixtures("jdk")
VERSION = "4.9.9"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = Repository(tmp_path / "maven")
    for artifact in jars.kafka_set(VERSION).artifacts:
        made.add(artifact.organisation, artifact.name, artifact.version, ("org.example", "shared", "1.0"))
    made.add("org.example", "shared", "1.0")
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", made.root.as_uri() + "/")
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    return made


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def names(found):
    return [jar.name for jar in found]


def test_jar_set_is_fetched_with_dependencies_and_cached(repository, cache, monkeypatch):
    said = []
    found = jars.jars_of(jars.kafka_set(VERSION), cache, progress=said.append)
    assert "kafka_2.13-4.9.9.jar" in names(found)
    assert "shared-1.0.jar" in names(found)
    assert {jar.parent for jar in found} == {cache / "jars" / "kafka-4.9.9"}
    assert said[0] == "fetching the jars of kafka 4.9.9, once (a minute or two)"
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert jars.jars_of(jars.kafka_set(VERSION), cache) == found


def test_concurrent_fetches_fetch_once(repository, cache):
    code = (
        "import json, pathlib, sys; from kops.gateways.machine import jars; said = [];"
        "found = jars.jars_of(jars.kafka_set(sys.argv[2]), pathlib.Path(sys.argv[1]), progress=said.append);"
        "print(json.dumps([len(found), said]))"
    )
    command = [sys.executable, "-c", code, str(cache), VERSION]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outcomes = [json.loads(process.communicate(timeout=HANG_SECONDS)[0]) for process in running]
    assert [count for count, _ in outcomes] == [6, 6]
    assert sum("fetching the jars of kafka 4.9.9, once (a minute or two)" in said for _, said in outcomes) == 1


def test_failed_fetch_leaves_nothing_behind(repository, cache):
    (repository.root / "org/example/shared/1.0/shared-1.0.jar").unlink()
    with pytest.raises(MissingRequirement, match="the jars cannot be fetched from file:") as missing:
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert "shared" in missing.value.message
    assert not (cache / "jars" / "kafka-4.9.9").exists()
    with zipfile.ZipFile(repository.root / "org/example/shared/1.0/shared-1.0.jar", "w") as jar:
        jar.writestr("it", "shared")
    assert "shared-1.0.jar" in names(jars.jars_of(jars.kafka_set(VERSION), cache))


def test_jar_with_wrong_checksum_is_refused_and_not_kept(repository, cache, monkeypatch):
    """What the repository's own checksums do not tell: it has other jars, or more of them."""
    found = jars.jars_of(jars.kafka_set(VERSION), cache)
    right = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in found}
    pins = {"kafka-4.9.9": right}
    monkeypatch.setattr(checksums, "pinned", lambda: pins)
    checksums.verify_checksums("kafka-4.9.9", found, "it")
    for known, wrong in (
        ({**right, "shared-1.0.jar": "0" * 64}, "a shared-1.0.jar that is not the one of kafka-4.9.9: its SHA-256 is"),
        ({name: digest for name, digest in right.items() if "shared" not in name}, "shared-1.0.jar, which is not one of the jars of"),
    ):
        pins["kafka-4.9.9"] = known
        folder = cache / str(len(known))
        with pytest.raises(MissingRequirement, match=re.escape(wrong)) as refused:
            jars.jars_of(jars.kafka_set(VERSION), folder)
        assert refused.value.message.startswith(f"{repository.root.as_uri()}/ serves ")
        assert [path for path in (folder / "jars").iterdir() if path.suffix != ".lock"] == []


@pytest.fixture
def served(repository, monkeypatch):
    """The repository by HTTP, with a set that is pinned; what was asked for."""
    asked = []

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=repository.root)

        def log_message(self, text, *values):
            asked.append((self.path, self.headers["Authorization"]))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", f"http://me:secret@127.0.0.1:{server.server_port}/")
    digests = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in repository.root.rglob("*.jar")}
    places = {str(file.relative_to(repository.root)): digest for file, digest in digests.items()}
    monkeypatch.setattr(checksums, "_places", lambda: {"kafka-4.9.9": places})
    yield asked
    server.shutdown()
    server.server_close()


def test_pinned_set_is_fetched_from_known_places(served, cache, monkeypatch):
    monkeypatch.setattr(ivy, "resolve", None)
    said = []
    found = jars.jars_of(jars.kafka_set(VERSION), cache, progress=said.append)
    assert (len(found), said[-1]) == (6, "fetching: 6 of 6 jars")
    assert sorted(path.rpartition("/")[2] for path, _login in served) == names(found)
    assert {login for _path, login in served} == {"Basic bWU6c2VjcmV0"}
    assert [path for path in (cache / "jars").iterdir() if path.suffix != ".lock"] == [cache / "jars" / "kafka-4.9.9"]


def test_ivy_says_what_a_repository_lacks_of_a_pinned_set(served, repository, cache):
    (repository.root / "org/example/shared/1.0/shared-1.0.jar").unlink()
    with pytest.raises(MissingRequirement, match=r"the jars cannot be fetched from http://127\.0\.0\.1:\d+/: .*shared"):
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert not (cache / "jars" / "kafka-4.9.9").exists()


def test_default_jar_sets_are_pinned():
    for wanted in (jars.kafka_set(), jars.connect_set()):
        known = checksums.pinned()[wanted.folder]
        assert {f"{artifact.name}-{artifact.version}.jar" for artifact in wanted.artifacts} <= set(known)
    for folder, known in checksums.pinned().items():
        held = Path(os.environ["KOPS_CACHE_DIR"]) / "jars" / folder
        if held.is_dir():
            checksums.verify_checksums(folder, sorted(held.glob("*.jar")), "the cache")
        assert all(len(digest) == 64 for digest in known.values())


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://nowhere.invalid/"])
def test_empty_cache_without_network_gives_hint(cache, monkeypatch, url):
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", url)
    with pytest.raises(MissingRequirement, match=f"cannot be fetched from {url}") as missing:
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert "kops doctor --fetch" in missing.value.hint
    assert "KOPS_JARS_DIR" in missing.value.hint


def test_jars_shipped_with_pyspark_are_left_out(repository, cache, monkeypatch):
    monkeypatch.setattr(checksums, "pinned", dict)
    version = ivy.pyspark_version()
    needs = (("org.scala-lang", "scala-library", "2.13.16"), ("org.slf4j", "slf4j-api", "9.9"), ("org.example", "shared", "1.0"))
    repository.add("org.apache.spark", "spark-sql-kafka-0-10_2.13", version, *needs)
    repository.add("org.slf4j", "slf4j-api", "9.9")
    assert names(jars.jars_of(jars.spark_kafka_set(), cache)) == ["shared-1.0.jar", f"spark-sql-kafka-0-10_2.13-{version}.jar"]


def test_fetch_disabled_gives_hint(cache):
    with pytest.raises(MissingRequirement, match=r"the jars of kafka 4\.9\.9 are not in"):
        jars.jars_of(jars.kafka_set(VERSION), cache, fetch=False)


@pytest.mark.parametrize("folder", ["", "kafka-4.9.9"])
def test_jars_directory_replaces_cache(cache, tmp_path, monkeypatch, folder):
    given = tmp_path / "given"
    (given / folder).mkdir(parents=True)
    (given / folder / "kafka_2.13-4.9.9.jar").touch()
    assert names(jars.jars_of(jars.kafka_set(VERSION), cache, jars_directory=given)) == ["kafka_2.13-4.9.9.jar"]
    monkeypatch.setenv("KOPS_JARS_DIR", str(given))
    assert names(jars.jars_of(jars.kafka_set(VERSION), cache)) == ["kafka_2.13-4.9.9.jar"]


def test_jars_directory_without_required_jar_is_refused(cache, tmp_path):
    (tmp_path / "kafka_2.13-4.0.0.jar").touch()
    with pytest.raises(MissingRequirement, match=r"there is no kafka_2\.13-4\.9\.9\.jar in"):
        jars.jars_of(jars.kafka_set(VERSION), cache, jars_directory=tmp_path)


@pytest.mark.parametrize("version", ["3.2.3", "2.8.2", "latest", "4", "../4.3.1", ""])
def test_invalid_version_is_rejected(cache, version):
    with pytest.raises(UsageProblem, match="is not a version of Apache Kafka that kops can run"):
        jars.jars_of(jars.kafka_set(version), cache)
