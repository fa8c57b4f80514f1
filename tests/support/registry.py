"""A real schema registry for tests: Apicurio, with Confluent's API, in memory."""

import contextlib
import fcntl
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import requests

from kops.gateways.ivy import MAVEN_CENTRAL, pyspark_jars
from kops.sandbox.ports import pick
from support.streams_apps import wait_for

VERSION = "3.0.9"
SECONDS = 90
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m")
# Without POMs: the one of the archive names a parent that mirrors need not have, and nothing of it is needed.
_SETTINGS = """<ivysettings><settings defaultResolver="maven"/><resolvers>
<ibiblio name="maven" m2compatible="true" usepoms="false" root="{root}"/></resolvers></ivysettings>"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="kops" module="registry"/><configurations><conf name="default"/></configurations>
<dependencies><dependency org="io.apicurio" name="apicurio-registry-app" rev="{version}" transitive="false" conf="default->default">
<artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/></dependency></dependencies></ivy-module>"""


class Registry:
    """The registry's address, and what a test puts there."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"

    def answers(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.url}/subjects", timeout=5).status_code == 200
        return False

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[dict[str, object]] | None = None) -> int:
        """Return the id that a schema gets."""
        body = {"schema": schema, "schemaType": kind, "references": references or []}
        answer = requests.post(f"{self.url}/subjects/{subject}/versions", json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])


@pytest.fixture(scope="session")
def registry(jdk, tmp_path_factory):
    """A registry shared by the whole run: use subjects with names of your own."""
    folder = _unpacked(jdk.java)
    (port,) = pick(1)
    found = Registry(port)
    options = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-Dquarkus.log.level=WARN"]
    command = [str(jdk.java), *_JVM, *options, "-jar", str(folder / f"apicurio-registry-app-{VERSION}-runner.jar")]
    log = tmp_path_factory.mktemp("registry") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)
    try:
        wait_for("the registry to answer", lambda: process.poll() is not None or found.answers(), SECONDS)
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        yield found
    finally:
        process.kill()
        process.wait(30)


def _unpacked(java: Path) -> Path:
    """Return the registry's folder in the cache, fetched the first time."""
    jars = Path(os.environ["KOPS_CACHE_DIR"]) / "jars"
    folder = jars / f"apicurio-registry-{VERSION}"
    jars.mkdir(parents=True, exist_ok=True)
    with (jars / ".registry.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            work = jars / ".registry"
            whole = _fetched(java, work) / "whole"
            with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
                archive.extractall(whole, filter="data")
            whole.rename(folder)
    return folder


def _fetched(java: Path, work: Path) -> Path:
    work.mkdir(exist_ok=True)
    (work / "settings.xml").write_text(_SETTINGS.format(root=os.environ.get("KOPS_MAVEN_REPOSITORY") or MAVEN_CENTRAL))
    (work / "ivy.xml").write_text(_MODULE.format(version=VERSION))
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    files = ["-settings", work / "settings.xml", "-ivy", work / "ivy.xml", "-cache", work / "cache"]
    command = [java, "-cp", ivy, "org.apache.ivy.Main", *files, "-retrieve", f"{work}/[artifact]-[revision].[ext]", "-types", "tar.gz"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False)
    if not list(work.glob("*.tar.gz")):
        pytest.skip(f"the registry cannot be fetched: {done.stdout[-300:]}")
    return work
