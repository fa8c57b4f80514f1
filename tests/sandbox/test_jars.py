"""Jars are fetched once, whole or not at all, from a Maven repository in a folder or served from one."""

import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from kops.core.errors import MissingRequirement, UsageProblem
from kops.core.progress import NoProgress
from kops.gateways.machine import checksums, jars, poms
from kops.gateways.machine.archives import REGISTRY, REGISTRY_VERSION
from kops.gateways.machine.maven import Repository as Fetched
from support import maven_answers
from support.maven import Repository
from support.patience import HANG_SECONDS

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


class Said(NoProgress):
    def __init__(self):
        self.steps, self.advances = [], []

    def step(self, text):
        self.steps.append(text)

    def advance(self, done, total, unit):
        self.advances.append((done, total, unit))


def names(found):
    return [jar.name for jar in found]


def test_jar_set_is_fetched_with_dependencies_and_cached(repository, cache, monkeypatch):
    said = Said()
    found = jars.jars_of(jars.kafka_set(VERSION), cache, progress=said)
    assert "kafka_2.13-4.9.9.jar" in names(found)
    assert "shared-1.0.jar" in names(found)
    assert {jar.parent for jar in found} == {cache / "jars" / "kafka-4.9.9"}
    assert said.steps == ["fetching the jars of kafka 4.9.9, once", "reading the POMs of what kafka_2.13 4.9.9 needs"]
    assert said.advances == [(number, 6, "jars") for number in range(1, 7)]
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert jars.jars_of(jars.kafka_set(VERSION), cache) == found


def test_a_set_of_an_earlier_kops_is_replaced_by_this_one(repository, cache):
    """It has the same version of Kafka, and another one of Log4j."""
    found = jars.jars_of(jars.kafka_set(VERSION), cache)
    folder = found[0].parent
    (logging,) = folder.glob("log4j-slf4j-impl-*.jar")
    logging.rename(folder / "log4j-slf4j-impl-2.0.0.jar")
    assert jars.jars_of(jars.kafka_set(VERSION), cache) == found == sorted(folder.glob("*.jar"))


def test_concurrent_fetches_fetch_once(repository, cache):
    code = (
        "import json, pathlib, sys, types; from kops.gateways.machine import jars; said = [];"
        "progress = types.SimpleNamespace(step=said.append, advance=lambda *_: None);"
        "found = jars.jars_of(jars.kafka_set(sys.argv[2]), pathlib.Path(sys.argv[1]), progress=progress);"
        "print(json.dumps([len(found), said]))"
    )
    command = [sys.executable, "-c", code, str(cache), VERSION]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outcomes = [json.loads(process.communicate(timeout=HANG_SECONDS)[0]) for process in running]
    assert [count for count, _ in outcomes] == [6, 6]
    assert sum("fetching the jars of kafka 4.9.9, once" in said for _, said in outcomes) == 1


def test_failed_fetch_leaves_nothing_behind(repository, cache):
    (repository.root / "org/example/shared/1.0/shared-1.0.jar").unlink()
    with pytest.raises(MissingRequirement, match=r"shared-1\.0\.jar cannot be fetched from file:"):
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert not (cache / "jars" / "kafka-4.9.9").exists()
    with zipfile.ZipFile(repository.root / "org/example/shared/1.0/shared-1.0.jar", "w") as jar:
        jar.writestr("it", "shared")
    assert "shared-1.0.jar" in names(jars.jars_of(jars.kafka_set(VERSION), cache))


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def places(repository):
    return {str(file.relative_to(repository.root)): sha256(file) for file in repository.root.rglob("*.jar")}


def test_jar_with_wrong_checksum_is_refused_and_not_kept(repository, cache, monkeypatch):
    """What the repository's own checksums do not tell."""
    known = places(repository)
    shared = next(place for place in known if "shared" in place)
    pins = {"kafka-4.9.9": {**known, shared: "0" * 64}}
    monkeypatch.setattr(jars, "pinned", lambda: pins)
    wrong = f"{repository.root.as_uri()}/ serves a shared-1.0.jar that is not the expected one: its SHA256 is {known[shared]}, not 0000"
    with pytest.raises(MissingRequirement, match=re.escape(wrong)) as refused:
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert "nothing was installed" in refused.value.hint
    assert not (cache / "jars" / "kafka-4.9.9").exists()
    assert [file for file in cache.rglob("*") if file.name.startswith("shared")] == [
        cache / "jars" / ".kafka-4.9.9.part" / "repository" / "org/example/shared"
    ]
    pins["kafka-4.9.9"] = known
    assert {jar.name: sha256(jar) for jar in jars.jars_of(jars.kafka_set(VERSION), cache)} == {Path(p).name: d for p, d in known.items()}


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_jar_that_is_damaged_is_refused_by_the_checksum_beside_it(repository, cache, kind):
    jar = repository.root / "org/example/shared/1.0/shared-1.0.jar"
    beside = jar.with_name(f"{jar.name}.{kind}")
    beside.write_text(f"{'0' * hashlib.new(kind).digest_size * 2}  {jar.name}\n")
    with pytest.raises(MissingRequirement, match=f"its {kind.upper()} is "):
        jars.jars_of(jars.kafka_set(VERSION), cache)
    beside.write_text(hashlib.new(kind, jar.read_bytes()).hexdigest().upper())
    assert "shared-1.0.jar" in names(jars.jars_of(jars.kafka_set(VERSION), cache))


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
    pins = {"kafka-4.9.9": places(repository)}
    monkeypatch.setattr(jars, "pinned", lambda: pins)
    yield asked
    server.shutdown()
    server.server_close()


def test_pinned_set_is_fetched_from_known_places(served, cache, monkeypatch):
    monkeypatch.setattr(jars, "resolve", None)
    said = Said()
    found = jars.jars_of(jars.kafka_set(VERSION), cache, progress=said)
    assert (len(found), said.advances[-1]) == (6, (6, 6, "jars"))
    assert sorted(path.rpartition("/")[2] for path, _login in served) == names(found)
    assert {login for _path, login in served} == {"Basic bWU6c2VjcmV0"}
    assert [path for path in (cache / "jars").iterdir() if path.suffix != ".lock"] == [cache / "jars" / "kafka-4.9.9"]


def test_what_a_repository_lacks_of_a_pinned_set_is_named_and_the_rest_is_kept(served, repository, cache):
    jar = repository.root / "org/example/shared/1.0/shared-1.0.jar"
    content = jar.read_bytes()
    jar.unlink()
    with pytest.raises(
        MissingRequirement, match=r"shared-1\.0\.jar cannot be fetched from http://127\.0\.0\.1:\d+/: it is not there"
    ) as missing:
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert "secret" not in f"{missing.value.message}{missing.value.hint}"
    assert not (cache / "jars" / "kafka-4.9.9").exists()
    jar.write_bytes(content)
    kept = {file.name for file in (cache / "jars").rglob("*.jar")}
    served.clear()
    found = jars.jars_of(jars.kafka_set(VERSION), cache)
    assert {path.rpartition("/")[2] for path, _login in served} == set(names(found)) - kept


@pytest.fixture
def breaking(monkeypatch):
    """A repository that has one file of a megabyte, and ends every answer after a third of it; what was asked for."""
    content, asked = os.urandom(1_000_000), []

    class File(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if not self.path.endswith(".jar"):
                return self.send_error(404)
            start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
            asked.append(start)
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-999999/1000000")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : start + 333_334])
            self.close_connection = True
            return None

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), File)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
    yield content, asked
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("left", ["nothing", "the beginning", "of another file"])
def test_a_file_is_continued_where_the_connection_broke(breaking, tmp_path, left):
    content, asked = breaking
    part = tmp_path / "g/a/1/a-1.jar.part"
    part.parent.mkdir(parents=True)
    if left != "nothing":
        part.write_bytes(content[:500_000] if left == "the beginning" else b"x" * 500_000)
    with Fetched(tmp_path, NoProgress()) as repository:
        file = repository.fetch("g/a/1/a-1.jar", hashlib.sha256(content).hexdigest())
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == ["a-1.jar"]
    whole = [0, 5 * 2**16, 10 * 2**16, 15 * 2**16]  # what came of the last 64 KiB before a break is lost
    assert asked == {"nothing": whole, "the beginning": [500_000, 827_680], "of another file": [500_000, 827_680, *whole]}[left]


def test_default_jar_sets_are_pinned():
    for wanted in (jars.kafka_set(), jars.connect_set()):
        assert {artifact.place for artifact in wanted.artifacts} <= set(checksums.pinned()[wanted.folder])
    assert list(checksums.pinned()[f"apicurio-registry-{REGISTRY_VERSION}"]) == [REGISTRY.place]
    for folder, known in checksums.pinned().items():
        held = {jar.name: jar for jar in (Path(os.environ["KOPS_CACHE_DIR"]) / "jars" / folder).glob("*.jar")}
        ours = "registry" not in folder and {Path(place).name for place in known} <= set(held)  # not an earlier set
        for jar in held.values() if ours else ():
            assert sha256(jar) in known.values(), jar
        assert all(len(digest) == 64 for digest in known.values())


@pytest.mark.long
@pytest.mark.parametrize("name", maven_answers.SETS)
def test_sets_are_those_that_maven_resolves(tmp_path, name):
    """Reads the POMs of the repository."""
    wanted = maven_answers.SETS[name]
    with Fetched(tmp_path, NoProgress()) as repository:
        found = poms.resolve(wanted.artifacts, lambda place: repository.fetch(place).read_bytes(), wanted.exclude)
    assert sorted(each.file for each in found) == maven_answers.recorded()[name]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://nowhere.invalid/"])
def test_empty_cache_without_network_gives_hint(cache, monkeypatch, url):
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", url)
    with pytest.raises(MissingRequirement, match=f"cannot be fetched from {url}") as missing:
        jars.jars_of(jars.kafka_set(VERSION), cache)
    assert "kops doctor --fetch" in missing.value.hint
    assert "KOPS_JARS_DIR" in missing.value.hint


def test_jars_shipped_with_pyspark_are_left_out(repository, cache, monkeypatch):
    monkeypatch.setattr(jars, "pinned", dict)
    version = metadata.version("pyspark")
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
