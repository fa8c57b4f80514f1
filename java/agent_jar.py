"""Compile the Java parts of kops, ``kops-agent.jar`` and ``kops-runner.jar``: ``make setup`` and the build of a wheel put them there.

A JDK is needed here, so that users need only a JRE. The runner is compiled for the oldest Kafka Streams that it runs with, and has a jar
of its own: the agent's is on the bootstrap class path, from where classes see no program's library. The agent rewrites one constructor
with ASM (some 125 KB, without dependencies), which is fetched once from Maven Central, checked against a pinned digest, and put into the
jar below ``private/``: no class loader of a program finds it there, so it cannot get in the way of another ASM.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kops.gateways.machine import jar_stamps

HERE = Path(__file__).parent
_FETCHED = HERE.parent / "build" / "java"
TARGET = HERE.parent / "src" / "kops" / "java" / "kops-agent.jar"
RUNNER = TARGET.with_name("kops-runner.jar")
RELEASE = "11"
"""The oldest Java on which programs are captured."""

_ASM = "org/ow2/asm/asm/9.8/asm-9.8.jar"
_ASM_SHA256 = "876eab6a83daecad5ca67eb9fcabb063c97b5aeb8cf1fca7a989ecde17522051"
_KAFKA = {
    "org/apache/kafka/kafka-clients/2.8.2/kafka-clients-2.8.2.jar": "0351de6b808f551e4c6cf230a83984d653e14776cc0f4621e7a3eab377e2f621",
    "org/apache/kafka/kafka-streams/2.8.2/kafka-streams-2.8.2.jar": "ca8c6331e4e6861c87cf72ada1f18a238699574adb35710bc61025edfacd91d7",
}
_MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
_MANIFEST = (
    "Manifest-Version: 1.0\r\nPremain-Class: kops.agent.Agent\r\nBoot-Class-Path: kops-agent.jar\r\nCan-Retransform-Classes: true\r\n\r\n"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NOTICE = """This jar contains ASM 9.8 (https://asm.ow2.io), below private/org/objectweb/asm:

"""


def build(target: Path = TARGET) -> Path:
    """Make the agent's jar, unless it is there and made of these very sources; the same sources give the same bytes.

    :raises RuntimeError: without a JDK, or when ASM cannot be fetched; it says what to do
    """
    sources, wanted = jar_stamps.sources(jar_stamps.AGENT), jar_stamps.expected_stamp(jar_stamps.AGENT)
    if jar_stamps.stamp_of(target) == wanted:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    javac, asm = _javac(), _fetched(_ASM, _ASM_SHA256)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _compile(javac, sources, [asm], work / "classes")
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        _pack(work / "classes", asm, wanted, fresh)
        fresh.replace(target)
    return target


def build_runner(target: Path = RUNNER) -> Path:
    """Make the runner's jar, in the same way.

    :raises RuntimeError: without a JDK, or when Kafka Streams cannot be fetched
    """
    sources, wanted = jar_stamps.sources(jar_stamps.RUNNER), jar_stamps.expected_stamp(jar_stamps.RUNNER)
    if jar_stamps.stamp_of(target) == wanted:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    javac, jars = _javac(), [_fetched(*each) for each in _KAFKA.items()]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _compile(javac, sources, jars, work / "classes", strict=False)
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
            _put(archive, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n")
            _put(archive, jar_stamps.ENTRY, wanted.encode())
            for file in sorted((work / "classes").rglob("*.class")):
                _put(archive, file.relative_to(work / "classes").as_posix(), file.read_bytes())
        fresh.replace(target)
    return target


def _fetched(place: str, sha256: str) -> Path:
    jar = _FETCHED / place.rpartition("/")[2]
    if jar.exists() and hashlib.sha256(jar.read_bytes()).hexdigest() == sha256:
        return jar
    repository = (os.environ.get("KOPS_MAVEN_REPOSITORY") or _MAVEN_CENTRAL).rstrip("/")
    try:
        with urllib.request.urlopen(f"{repository}/{place}", timeout=60) as answer:
            content = answer.read()
    except (OSError, ValueError) as error:
        raise RuntimeError(f"cannot fetch {place}: {error} (KOPS_MAVEN_REPOSITORY=URL names a mirror)") from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise RuntimeError(f"{place} is not the one kops is built with: its SHA-256 is {found}")
    jar.parent.mkdir(parents=True, exist_ok=True)
    part = jar.with_name(f".{jar.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(jar)
    return jar


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    javac = str(Path(home) / "bin" / "javac") if home else shutil.which("javac")
    if not javac or not Path(javac).exists():
        raise RuntimeError("there is no javac: put that of a JDK 11 or newer on the PATH, or name the JDK with JAVA_HOME")
    return javac


def _compile(javac: str, sources: list[Path], jars: list[Path], classes: Path, *, strict: bool = True) -> None:
    """Compile sources.

    :param strict: no warning passes; the library itself gives some
    """
    warnings = ["-Xlint:all", "-Werror"] if strict else ["-nowarn"]
    options = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "--release", RELEASE, *warnings]
    command = [javac, *options, "-cp", os.pathsep.join(map(str, jars)), "-d", str(classes), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{sources[0].parent} does not compile:\n{done.stderr}")


def _pack(classes: Path, asm: Path, wanted: str, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, zipfile.ZipFile(asm) as library:
        _put(archive, "META-INF/MANIFEST.MF", _MANIFEST.encode())
        _put(archive, jar_stamps.ENTRY, wanted.encode())
        _put(archive, "META-INF/NOTICE", (_NOTICE + (HERE / "agent" / "ASM-LICENSE").read_text()).encode())
        for file in sorted(classes.rglob("*.class")):
            place = file.relative_to(classes).as_posix()
            _put(archive, f"private/{place}" if place.startswith("kops/rewrite/") else place, file.read_bytes())
        for name in sorted(library.namelist()):
            if name.startswith("org/objectweb/asm/") and name.endswith(".class"):
                _put(archive, f"private/{name}", library.read(name))


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


if __name__ == "__main__":
    try:
        print(build())
        print(build_runner())
    except RuntimeError as problem:
        sys.exit(str(problem))
