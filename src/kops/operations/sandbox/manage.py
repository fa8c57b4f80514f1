"""``kops sandbox``: sandboxes by name, in kops' data directory, each with a context of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kops.config.load import read_config
from kops.config.schema import check_context_name
from kops.core.errors import ConfigError, NotFound, Refused, UsageProblem
from kops.gateways.connect.plugins import FILE_STREAM, plugin_folder, plugins_directory
from kops.gateways.machine.archives import registry_folder
from kops.gateways.machine.jars import CONNECT_VERSION, KAFKA_VERSION, connect_set, jars_of, kafka_set, untested
from kops.gateways.machine.jdk import require_jdk
from kops.operations.services import Services
from kops.sandbox import cluster, logs
from kops.sandbox.model import PLAINTEXT, STANDALONE, Sandbox, load
from kops.sandbox.parts import PartStatus, SandboxProcess

DEFAULT_NAME = "sandbox"


def bring_up(
    services: Services,
    name: str,
    *,
    brokers: int | None = None,
    kafka_version: str | None = None,
    security: str | None = None,
    racks: bool = False,
    new_ports: bool = False,
    connect_workers: int = 0,
    connect: str | None = None,
    registry: bool = False,
    plugins: Sequence[Path] = (),
    jars_directory: Path | None = None,
) -> cluster.Status:
    """Create a sandbox, or restart the one of this name with its data, and register its context.

    :param brokers: of a new sandbox, default 1; an existing one cannot change it, nor the next three
    :param new_ports: give a stopped sandbox other ports
    :param connect_workers: minimum number; existing ones are kept
    :param connect: how Connect runs: distributed (default) or standalone; an existing one cannot change it
    :param registry: add a schema registry; an existing one is kept
    :param plugins: directories of Connect plugin directories, in addition to the cache
    :param jars_directory: used instead of the cache
    :raises UsageProblem: when the sandbox was created with other settings
    :raises Refused: when a port is in use, or the context belongs to another cluster
    :raises MissingRequirement: without Java, or with neither jars nor network
    """
    wanted = {
        "--brokers": brokers,
        "--kafka-version": kafka_version,
        "--security": security,
        "--connect": connect,
        "--racks": racks or None,
    }
    directory = folder(services, name)
    found = load(directory)
    if found is not None:
        _refuse_other_settings(found, wanted)
    if connect_workers > 1 and STANDALONE in (connect, found.connect if found else None):
        raise UsageProblem(
            "a standalone Connect is one worker", hint="leave --workers out, or use another --name with --connect distributed"
        )
    _refuse_foreign_context(services, name, found)
    version = found.kafka_version if found else kafka_version or KAFKA_VERSION
    if newer := untested(version):
        services.progress.step(newer)
    require_jdk()
    programs = _programs(services, found, version, connect=bool(connect_workers), registry=registry, jars_directory=jars_directory)
    if found is None:
        found = cluster.make(directory, name=name, kafka_version=version, brokers=brokers or 1, security=security or PLAINTEXT, racks=racks)
        _refuse_other_settings(found, wanted)  # another kops may just have created it
    elif new_ports:
        found = cluster.move_ports(found)
    cache = services.directories.cache
    own = [plugin_folder(cache, FILE_STREAM).parent, plugins_directory(cache)] if connect_workers else []
    paths = [str(folder.resolve()) for folder in (*own, *plugins)]
    found = cluster.add(found, connect_workers=connect_workers, connect=connect or "", registry=registry, plugin_path=paths)
    _register(services, found)
    cluster.up(found, programs, progress=services.progress)
    return cluster.status(found)


def _programs(
    services: Services, found: Sandbox | None, version: str, *, connect: bool, registry: bool, jars_directory: Path | None
) -> cluster.Programs:
    """Return the programs of a sandbox, fetched if necessary: Connect and the registry only if they are requested."""
    cache, progress = services.directories.cache, services.progress
    kafka = jars_of(kafka_set(version), cache, progress=progress, jars_directory=jars_directory)
    has_connect, has_registry = connect or bool(found and found.workers), registry or bool(found and found.registry_port)
    if has_connect:
        plugin_folder(cache, FILE_STREAM, progress=progress)
    return cluster.Programs(
        require_jdk(),
        kafka,
        jars_of(
            connect_set(CONNECT_VERSION if version == KAFKA_VERSION else version), cache, progress=progress, jars_directory=jars_directory
        )
        if has_connect
        else (),
        registry_folder(cache, progress=progress) if has_registry else None,
    )


def take_down(services: Services, name: str, *, delete: bool = False) -> cluster.Status:
    """Stop a sandbox; unless ``delete`` is set, its data and its context stay.

    :returns: the status before
    :raises NotFound: when there is no sandbox of this name
    """
    sandbox = existing(services, name)
    before = cluster.status(sandbox)
    if before.state != "stopped":
        services.progress.step(f"stopping sandbox {name}")
    cluster.down(sandbox, delete=delete)
    if delete:
        _forget(services, sandbox)
    return before


def describe(services: Services, name: str) -> cluster.Status:
    return cluster.status(existing(services, name))


def read_logs(
    services: Services, name: str, *, broker: int | None = None, worker: int | None = None, registry: bool = False, lines: int, follow: bool
) -> Iterator[logs.LogLine]:
    """Return the last lines of the parts' logs, and with ``follow`` new ones.

    :param broker: only this one, as with ``worker`` and ``registry``; by default all parts
    :raises ConfigError: when the sandbox has no such part
    """
    return logs.read(_named_parts(existing(services, name), broker, worker, registry=registry), lines=lines, follow=follow)


def _named_parts(sandbox: Sandbox, broker: int | None, worker: int | None, *, registry: bool) -> list[SandboxProcess]:
    every = cluster.parts_of(sandbox)
    wanted = (("broker", broker), ("worker", worker), ("registry", 1 if registry else None))
    asked = [(kind, number) for kind, number in wanted if number is not None]
    missing = [one for one in asked if one not in {(part.kind, part.id) for part in every}]
    if missing:
        kind, number = missing[0]
        there = ", ".join(part.name for part in every)
        raise ConfigError(f"sandbox {sandbox.name} has no {kind}{'' if kind == 'registry' else f' {number}'}", hint=f"it has {there}")
    return [part for part in every if not asked or (part.kind, part.id) in asked]


def existing(services: Services, name: str) -> Sandbox:
    found = load(folder(services, name))
    if found is None:
        others = sorted(file.parent.name for file in (services.directories.data / "sandbox").glob("*/sandbox.json"))
        known = f"existing: {', '.join(others)}; " if others else ""
        raise NotFound(f"there is no sandbox named {name}", hint=f"{known}create it: kops sandbox up{_named(name)}")
    return found


def folder(services: Services, name: str) -> Path:
    """Return the directory of a sandbox, which may not exist.

    :raises ConfigError: when the name is invalid: it could lead to another directory
    """
    check_context_name(name)
    return services.directories.data / "sandbox" / name


def as_json(status: cluster.Status) -> dict[str, Any]:
    sandbox = status.sandbox
    return {
        "name": sandbox.name,
        "state": status.state,
        "bootstrap_servers": sandbox.bootstrap_servers,
        "connect": sandbox.connect if sandbox.workers else None,
        "connect_url": sandbox.connect_urls[0] if sandbox.workers else None,
        "connect_urls": list(sandbox.connect_urls),
        "registry_url": sandbox.registry_url,
        "security": sandbox.security,
        "context": sandbox.name,
        "kafka_version": sandbox.kafka_version,
        "cluster_id": sandbox.cluster_id,
        "directory": str(sandbox.directory),
        "client_properties": str(sandbox.directory / "client.properties"),
        "brokers": [_part_json(each) for each in status.of("broker")],
        "workers": [_part_json(each) for each in status.of("worker")],
        "registry": next((_part_json(each) for each in status.of("registry")), None),
    }


def _part_json(each: PartStatus) -> dict[str, Any]:
    return {"id": each.part.id, "state": each.state, "pid": each.pid, "port": each.part.port, "log": str(each.part.log)}


def _refuse_other_settings(found: Sandbox, wanted: Mapping[str, int | str | None]) -> None:
    actual = {"--brokers": len(found.nodes), "--kafka-version": found.kafka_version, "--security": found.security, "--racks": found.racks}
    actual |= {"--connect": found.connect} if found.workers else {}
    for option, value in wanted.items():
        if value is not None and value != actual.get(option, value):
            was, wanted_now = ("no racks", "them") if option == "--racks" else (f"{option} {actual[option]}", f"{option} {value}")
            raise UsageProblem(
                f"sandbox {found.name} was created with {was}, and cannot have {wanted_now}",
                hint=f"use another --name, or delete it first: kops sandbox down{_named(found.name)} --delete",
            )


def _refuse_foreign_context(services: Services, name: str, found: Sandbox | None) -> None:
    """Refuse to replace the context of another cluster."""
    table = read_config(services.directories).contexts.get(name)
    if table is None:
        return
    if found is None or not _is_context_of(table, found):
        raise Refused(
            f"context {name} belongs to another cluster, and a sandbox registers a context of its own name",
            hint=f"use another --name, or remove the context: kops context remove {name}",
        )


def _register(services: Services, sandbox: Sandbox) -> None:
    """Save the context, keeping what the user added; it becomes the current one only if there is none."""
    from kops.config.contexts import save_context

    file = read_config(services.directories)
    table = {**file.contexts.get(sandbox.name, {}), **sandbox.context()}
    save_context(services.directories, sandbox.name, table, current=file.current is None)


def _forget(services: Services, sandbox: Sandbox) -> None:
    from kops.config.contexts import remove_context

    table = read_config(services.directories).contexts.get(sandbox.name)
    if table is not None and _is_context_of(table, sandbox):
        remove_context(services.directories, sandbox.name)


def _is_context_of(table: Mapping[str, Any], sandbox: Sandbox) -> bool:
    servers = table.get("bootstrap_servers")
    text = ",".join(servers) if isinstance(servers, list) else servers
    return text in (sandbox.bootstrap_servers, sandbox.previous_servers)


def _named(name: str) -> str:
    return "" if name == DEFAULT_NAME else f" --name {name}"
