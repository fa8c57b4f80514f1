"""Maven artifacts with their dependencies, fetched by the Ivy that PySpark ships.

Nothing else is needed on the machine: no Maven, no Coursier. Ivy reads Maven's POMs and keeps what it fetched in its cache, so an
interrupted run resumes. It verifies the checksums of the same repository, which detect a damaged file but not a malicious
repository; ``checksums`` does that for the sets that kops fetches by default, https for the rest.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from kops.core.errors import MissingRequirement
from kops.core.extras import STATE, needs
from kops.core.secret_shapes import without_login
from kops.gateways.machine.jdk import FOR_A_SHORT_RUN

Report = Callable[[str], None]
"""Receives a line of progress."""

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"

_EVERY = 20

_SETTINGS = """<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="maven"/>
  <timeout-constraints><timeout-constraint name="patient" connectionTimeout="15000" readTimeout="120000"/></timeout-constraints>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="{poms}" root={root} timeoutConstraint="patient"/></resolvers>
</ivysettings>
"""

_MODULE = """<ivy-module version="2.0">
  <info organisation="kops" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    {dependencies}
  </dependencies>
</ivy-module>
"""

_ARCHIVE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="kops" module="archive"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org={organisation} name={name} rev={version} transitive="false" conf="default->default">
      <artifact name={name} type={extension} ext={extension} m:classifier={classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""

_SIGNS_OF_FAILURE = (
    "UnknownHost",
    "unknown host",
    "Host ",
    "Connection refused",
    "timed out",
    "Server access error",
    "unresolved dependency",
    "[NOT FOUND",
    "[FAILED",
    "not found",
)
"""Substrings of Ivy's lines about failures, the most specific first."""


def silent(_line: str) -> None: ...


@dataclass(frozen=True)
class Artifact:
    """A Maven artifact.

    :param organisation: Maven's group id
    """

    organisation: str
    name: str
    version: str


def pyspark_jars() -> Path:
    """Return the directory of the jars that PySpark ships, without importing PySpark.

    :raises MissingRequirement: when PySpark is not installed, or without jars
    """
    needs(STATE, "fetching jars uses Ivy from PySpark and needs")
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "jars").is_dir():
            return Path(place) / "jars"
    raise MissingRequirement(
        "PySpark is not installed with its jars",
        hint="reinstall PySpark in the environment of kops",
    )


def pyspark_version() -> str:
    needs(STATE, "Spark's jars need")
    return importlib.metadata.version("pyspark")


def resolve(
    artifacts: Sequence[Artifact], *, java: Path, work: Path, repository: str, exclude: Sequence[str] = (), report: Report
) -> list[Path]:
    """Fetch artifacts and their runtime dependencies; return the files in Ivy's cache under ``work``.

    :param work: folder for Ivy's cache and its own files
    :param exclude: organisations (group ids) to leave out wherever they come up
    :raises MissingRequirement: when something cannot be fetched
    """
    work.mkdir(parents=True, exist_ok=True)
    settings, module, listing = work / "settings.xml", work / "ivy.xml", work / "classpath.txt"
    _write_settings(settings, repository, poms="true", report=report)
    module.write_text(_module(artifacts, exclude), encoding="utf-8")
    listing.unlink(missing_ok=True)
    files: tuple[str | Path, ...] = ("-settings", settings, "-ivy", module, "-cache", work / "cache", "-cachepath", listing)
    lines = _run(_command(java, *files, "-types", "jar", "bundle"), report)
    if not listing.exists():
        raise MissingRequirement(f"the jars cannot be fetched from {without_login(repository)}: {_reason(lines, repository)}")
    return [Path(path) for path in listing.read_text(encoding="utf-8").strip().split(os.pathsep)]


def retrieve(artifact: Artifact, classifier: str, extension: str, *, java: Path, work: Path, repository: str, report: Report) -> Path:
    """Fetch one file of an artifact, such as its ``plugin`` as ``tar.gz``, without POMs and dependencies.

    Its POM may name a parent that a mirror lacks, and an archive is self-contained.

    :param work: folder for Ivy's cache, its own files, and the file
    :raises MissingRequirement: when it cannot be fetched, or does not exist
    """
    work.mkdir(parents=True, exist_ok=True)
    settings, module = work / "archive-settings.xml", work / "archive.xml"
    _write_settings(settings, repository, poms="false", report=report)
    parts = {"organisation": artifact.organisation, "name": artifact.name, "version": artifact.version}
    parts |= {"extension": extension, "classifier": classifier}
    module.write_text(_ARCHIVE.format(**{name: quoteattr(text) for name, text in parts.items()}), encoding="utf-8")
    file = work / f"{artifact.name}-{artifact.version}-{classifier}.{extension}"
    file.unlink(missing_ok=True)
    pattern = f"{work}/[artifact]-[revision]-{classifier}.[ext]"
    files: tuple[str | Path, ...] = ("-settings", settings, "-ivy", module, "-cache", work / "cache", "-retrieve", pattern)
    lines = _run(_command(java, *files, "-types", extension), report)
    if not file.exists():
        raise MissingRequirement(f"{file.name} cannot be fetched from {without_login(repository)}: {_reason(lines, repository)}")
    return file


def is_unencrypted(repository: str) -> bool:
    """Whether what it serves passes a network in plain text."""
    return repository.startswith("http://") and not re.match(r"http://(?:[^/@]*@)?(?:localhost|127\.0\.0\.1|\[::1\])[:/]", repository)


def _write_settings(file: Path, repository: str, *, poms: str, report: Report) -> None:
    """Write Ivy's settings, readable by this user only: the address of a repository can contain credentials."""
    if is_unencrypted(repository):
        report(f"warning: jars come from {without_login(repository)} unencrypted, and so do their checksums: use https://")
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as settings:
        settings.write(_SETTINGS.format(root=quoteattr(repository), poms=poms))


def _command(java: Path, *arguments: str | Path) -> list[str]:
    ivy = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not ivy:
        raise MissingRequirement(f"there is no ivy jar in {pyspark_jars()}", hint="reinstall PySpark")
    return [str(part) for part in (java, *FOR_A_SHORT_RUN, "-cp", ivy[-1], "org.apache.ivy.Main", *arguments)]


def _module(artifacts: Sequence[Artifact], exclude: Sequence[str]) -> str:
    wanted = [
        f"<dependency org={quoteattr(a.organisation)} name={quoteattr(a.name)} rev={quoteattr(a.version)} conf='default->default'/>"
        for a in artifacts
    ]
    left_out = [f"<exclude org={quoteattr(organisation)}/>" for organisation in exclude]
    return _MODULE.format(dependencies="\n    ".join([*wanted, *left_out]))


def _run(command: Sequence[str], report: Report) -> list[str]:
    """Run Ivy, report progress, and return its output."""
    lines: list[str] = []
    found = fetched = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None  # noqa: S101 - asked for with PIPE
        try:
            for raw in process.stdout:
                line = raw.strip()
                lines.append(line)
                if line.startswith("found "):
                    found += 1
                    if found % _EVERY == 0:
                        report(f"resolving: {found} artifacts")
                elif line.startswith("downloading "):
                    fetched += 1
                    if fetched % _EVERY == 0 or fetched == found:
                        report(f"fetching: {fetched} of {found} jars")
        except BaseException:
            process.kill()
            raise
    return lines if process.returncode == 0 else [*lines, f"ivy ended with exit code {process.returncode}"]


def _reason(lines: Sequence[str], repository: str) -> str:
    """Find the line of Ivy's output that says why it failed, without the credentials of the repository's address."""
    address = repository.rstrip("/")
    return _failure_line(lines).replace(address, without_login(address))


def _failure_line(lines: Sequence[str]) -> str:
    for sign in _SIGNS_OF_FAILURE:
        for line in lines:
            if sign in line and not line.startswith("::::"):
                return line.lstrip(":! ").strip()
    return lines[-1] if lines else "Ivy printed nothing"
