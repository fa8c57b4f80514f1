"""The optional parts of the installation (extras): what each imports, whether it is there, and how to add it to this installation."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kops.core.errors import MissingRequirement

STATE, SCHEMAS, CONNECT = "state", "schemas", "connect"
MODULES = {
    STATE: ("pyspark", "pyarrow", "numpy", "pandas", "google_crc32c"),
    SCHEMAS: ("fastavro", "google.protobuf", "jsonschema", "pyarrow"),
    CONNECT: ("pyspark", "pyarrow", "grpc", "grpc_status", "google.rpc"),
}
"""The modules that the code imports from each extra. Order matters: a shared module belongs to the first extra."""
SPARK_TESTED = "4.2"
"""The newest release line of Spark that kops is tested with."""
_DISTRIBUTIONS = {"google.protobuf": "protobuf", "grpc": "grpcio", "grpc_status": "grpcio-status", "google.rpc": "googleapis-common-protos"}
"""Distributions whose name on PyPI differs from the module."""


def needs(extra: str, doing: str, *modules: str) -> None:
    """Check that an extra is installed; nothing is imported.

    :param doing: what needs it, the beginning of a sentence: "Avro records need"
    :param modules: the required ones; by default all modules of the extra
    :raises MissingRequirement: naming the extra and the command that adds it
    """
    if not all(map(installed, modules or MODULES[extra])):
        raise MissingRequirement(f"{doing} the extra '{extra}' of kops, which is not installed", hint=how_to_add(extra), extra=extra)


def untested_spark(version: str) -> str:
    """Return a sentence about a Spark that is newer than kops is tested with; empty for others."""
    line, tested = ([int(part) for part in re.findall(r"\d+", text)[:2]] for text in (version, SPARK_TESTED))
    return f"Spark {version} is untested: kops is tested with versions up to {SPARK_TESTED}" if line > tested else ""


def missing_distributions(extra: str) -> tuple[str, ...]:
    return tuple(distribution(module) for module in MODULES[extra] if not installed(module))


def installed(module: str) -> bool:
    """Whether a module can be imported; does not import it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent package is missing; a stub in sys.modules
        return False


def distribution(module: str) -> str:
    return _DISTRIBUTIONS.get(module, module.replace("_", "-"))


def missing_extra(error: BaseException) -> MissingRequirement | None:
    """Return the error to show in place of a failed import, if it belongs to an extra that is not installed."""
    if not isinstance(error, ImportError) or not error.name:
        return None
    for extra, modules in MODULES.items():
        if any(error.name == module or error.name.startswith(f"{module}.") for module in modules) and missing_distributions(extra):
            return MissingRequirement(
                f"this needs the extra '{extra}' of kops, which is not installed: no module {error.name}",
                hint=how_to_add(extra),
                extra=extra,
            )
    return None


def how_to_add(extra: str) -> str:
    missing, given = {_normal(name) for name in missing_distributions(extra)}, requirements(extra)
    wanted = [spec for spec in given if _name(spec) in missing]
    if not missing <= {_name(spec) for spec in wanted}:  # some are requirements of other distributions
        wanted = given
    return f"add it with: {command_to_add(wanted)}" if wanted else f"install kops with the extra '{extra}'"


def command_to_add(wanted: Sequence[str]) -> str:
    """Return the command that adds packages to the environment of kops, using the tool that created it.

    The command never asks an index for kops itself: on PyPI the name belongs to another project.
    """
    packages, environment = shlex.join(wanted), Path(sys.prefix)
    if (environment / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(environment.name)} {packages}"
    if (environment / "uv-receipt.toml").is_file() and (source := _source()):
        present = [extra for extra in MODULES if not missing_distributions(extra)]
        kept = [each for extra in present for each in requirements(extra)]  # uv recreates the environment
        together = dict.fromkeys([*kept, *wanted])
        return f"uv tool install --force {shlex.join(part for each in together for part in ('--with', each))} {shlex.quote(source)}"
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install {packages}" if installed("pip") else f"uv pip install --python {python} {packages}"


def requirements(extra: str) -> list[str]:
    """Return what an extra of the installed kops requires, such as ``pyspark>=4.0,<4.1``, including what its nested extras require."""
    found: list[str] = []
    for line in _declared():
        requirement, _, marker = line.partition(";")
        if not re.search(rf"extra\s*==\s*['\"]{extra}['\"]", marker):
            continue
        inner = re.match(r"kops\[([\w,-]+)\]", requirement.strip())
        found += [each for name in inner[1].split(",") for each in requirements(name)] if inner else [requirement.strip()]
    return list({_name(each): each for each in found}.values())  # pyspark[connect] comes after pyspark, and includes it


def _declared() -> list[str]:
    import importlib.metadata  # importing it takes longer than the rest of a command's start

    try:
        return importlib.metadata.requires("kops") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _source() -> str | None:
    """Return where kops was installed from: a file, a directory or a repository (PEP 610)."""
    import importlib.metadata
    import json

    try:
        recorded = json.loads(importlib.metadata.distribution("kops").read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    url = recorded.get("url")
    if not isinstance(url, str):
        return None
    version = recorded.get("vcs_info", {})
    return f"{version['vcs']}+{url}@{version['commit_id']}" if version else url.removeprefix("file://")


def _name(requirement: str) -> str:
    return _normal(re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
