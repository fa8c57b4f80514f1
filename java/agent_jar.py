"""Compile the Java parts of kops: ``src/kops/java/kops-agent.jar``, which ``make setup`` and the build of a wheel put there.

A JDK is needed here, so that users need only a JRE. The agent rewrites one constructor with ASM (some 125 KB, without dependencies),
which is fetched once from Maven Central, checked against a pinned digest, and put into the jar below ``private/``: no class loader of a
program finds it there, so it cannot get in the way of another ASM.
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

HERE = Path(__file__).parent
_FETCHED = HERE.parent / "build" / "java"
TARGET = HERE.parent / "src" / "kops" / "java" / "kops-agent.jar"
RELEASE = "11"
"""The oldest Java on which programs are captured."""

_ASM = "org/ow2/asm/asm/9.8/asm-9.8.jar"
_ASM_SHA256 = "876eab6a83daecad5ca67eb9fcabb063c97b5aeb8cf1fca7a989ecde17522051"
_MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
_MANIFEST = "Manifest-Version: 1.0\r\nPremain-Class: kops.agent.Agent\r\nBoot-Class-Path: kops-agent.jar\r\n\r\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NOTICE = """This jar contains ASM 9.8 (https://asm.ow2.io), below private/org/objectweb/asm:

"""


def build(target: Path = TARGET) -> Path:
    """Make the agent's jar, unless it is there and made of these very sources; the same sources give the same bytes.

    :raises RuntimeError: without a JDK, or when ASM cannot be fetched; it says what to do
    """
    sources = sorted((HERE / "agent" / "src").rglob("*.java"))
    made_of = _digest(sources)
    if _made_of(target) == made_of:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    javac, asm = _javac(), _asm()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _compile(javac, sources, asm, work / "classes")
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        _pack(work / "classes", asm, made_of, fresh)
        fresh.replace(target)
    return target


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def _made_of(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read("META-INF/made-of").decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def _asm() -> Path:
    jar = _FETCHED / _ASM.rpartition("/")[2]
    if jar.exists() and hashlib.sha256(jar.read_bytes()).hexdigest() == _ASM_SHA256:
        return jar
    repository = (os.environ.get("KOPS_MAVEN_REPOSITORY") or _MAVEN_CENTRAL).rstrip("/")
    try:
        with urllib.request.urlopen(f"{repository}/{_ASM}", timeout=60) as answer:
            content = answer.read()
    except (OSError, ValueError) as error:
        raise RuntimeError(f"cannot fetch {_ASM}: {error} (KOPS_MAVEN_REPOSITORY=URL names a mirror)") from None
    found = hashlib.sha256(content).hexdigest()
    if found != _ASM_SHA256:
        raise RuntimeError(f"{_ASM} is not the one kops is built with: its SHA-256 is {found}")
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


def _compile(javac: str, sources: list[Path], asm: Path, classes: Path) -> None:
    options = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "--release", RELEASE, "-Xlint:all", "-Werror"]
    command = [javac, *options, "-cp", str(asm), "-d", str(classes), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the agent does not compile:\n{done.stderr}")


def _pack(classes: Path, asm: Path, made_of: str, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, zipfile.ZipFile(asm) as library:
        _put(archive, "META-INF/MANIFEST.MF", _MANIFEST.encode())
        _put(archive, "META-INF/made-of", made_of.encode())
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
    except RuntimeError as problem:
        sys.exit(str(problem))
