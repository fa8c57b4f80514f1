"""kops as a release file installs it: its wheel with what it requires and nothing else, in an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from support.captured import built_agent
from support.command_line import Outcome
from support.patience import HANG_SECONDS

ROOT = Path(__file__).parents[2]
IN_THE_WHEEL = ("src", "java", "examples/prices", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
DRIVER = """
import io, json, sys
from kops.cli.frame.main import main

answers = []
for line in json.load(open(sys.argv[1])):
    saved = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    try:
        code = main(line)
    except SystemExit as end:
        code = end.code
    finally:
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = saved
    answers.append([code or 0, *(stream.buffer.getvalue().decode() for stream in streams)])
json.dump([answers, sorted(sys.modules)], open(sys.argv[2], "w"))
"""
"""Runs several commands in one process: what a command needs is not there for any of them."""


@dataclass(frozen=True)
class Installed:
    """An environment, and how kops runs in it.

    :param distributions: those that are installed beside kops
    :param java: whether its commands find Java
    """

    folder: Path
    distributions: frozenset[str]
    java: bool

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *lines: str, work: Path) -> tuple[list[Outcome], set[str]]:
        """Run commands one after the other; return what each came to, and the modules that they imported in all."""
        given, answers = work / "given.json", work / "answers.json"
        given.write_text(json.dumps([line.split() for line in lines]), "utf-8")
        (work / "driver.py").write_text(DRIVER, "utf-8")
        command = [str(self.python), "-I", str(work / "driver.py"), str(given), str(answers)]
        done = subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        outcomes, modules = json.loads(answers.read_text("utf-8"))
        return [Outcome(*outcome) for outcome in outcomes], set(modules)

    @property
    def environment(self) -> dict[str, str]:
        """Return the test's own environment; Java is not found in it unless it was asked for."""
        if self.java:
            return dict(os.environ)
        (self.folder / "no-java").mkdir(exist_ok=True)
        return {**{name: value for name, value in os.environ.items() if name != "JAVA_HOME"}, "PATH": str(self.folder / "no-java")}


def source_copy(folder: Path) -> Path:
    """Return a copy of what a wheel is built from, the Java agent of this tree included."""
    built_agent()
    source = folder / "source"
    for name in IN_THE_WHEEL:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, source / name)
    return source


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the source tree; return it."""
    source = source_copy(folder)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True, timeout=HANG_SECONDS)
    (found,) = folder.glob("kops-*.whl")
    return found


def install(wheel: Path, folder: Path, *extras: str, java: bool = False) -> Installed:
    """Install a wheel and what its metadata requires with these extras: linked from this environment, so no network is needed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=HANG_SECONDS)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        (described,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        required = metadata.PathDistribution(zipfile.Path(packed, described.removesuffix("METADATA"))).requires
    found: dict[str, metadata.Distribution] = {}
    _gather(required or [], set(extras), found)
    for distribution in found.values():
        for file in distribution.files or ():
            if not file.is_absolute() and ".." not in file.parts and file.suffix != ".pyc":
                _link(Path(str(file.locate())), site / file)
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, timeout=HANG_SECONDS)
    return Installed(folder, frozenset(found), java)


def _gather(requirements: list[str], extras: set[str], found: dict[str, metadata.Distribution]) -> None:
    """Add what is required here, and what that requires in turn."""
    for each in map(Requirement, requirements):
        if each.marker is not None and not any(each.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        name = each.name.lower().replace("_", "-")
        assert each.specifier.contains(metadata.version(name), prereleases=True), f"{each} is required, {metadata.version(name)} is here"
        if name not in found:
            found[name] = metadata.distribution(name)
            _gather(found[name].requires or [], set(each.extras), found)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
