"""Which schema registries an application's own program asks, and how it reaches them."""

from __future__ import annotations

from kops.config.connection import Connection
from kops.config.http import http_settings
from kops.core.errors import Refused
from kops.core.streams.capture import Capture
from kops.core.streams.registries import Origin, base_of, origin_of, other_registry, registry_settings
from kops.gateways.machine.program_connection import no_network_command
from kops.gateways.machine.program_registries import Registries
from kops.gateways.registry.read_only import Upstream
from kops.operations.services import Services
from kops.operations.state.own_code.start import ProgramRun
from kops.operations.state.own_code.surroundings import differences_here


def program_run(services: Services, capture: Capture, *, no_network: bool) -> ProgramRun:
    """Return what runs a captured program, and how it reaches its registries.

    :param no_network: it is run without a network
    :raises Refused: when it has none, and asks a registry that kops cannot stand for
    :raises MissingRequirement: when this system has no network namespaces
    """
    if no_network:
        _refuse_other(capture)
    registries = registries_of(capture, services.connection, alone=no_network)
    alone = no_network_command(loopback=bool(registries.upstreams)) if no_network else ()
    return ProgramRun(capture, alone=alone, registries=registries, differences=differences_here(capture))


def registries_of(capture: Capture, connection: Connection, *, alone: bool) -> Registries:
    """Return the registries that a program asks through kops.

    Without a network also that of the context, which its code may name. With one, only those to which kops comes as the program would.

    :raises Refused: when it has no network, and a setting names no registry of HTTP
    """
    settings = registry_settings(capture)
    urls = [url for value in settings.values() for url in value.split(",") if url.strip()]
    own = origin_of(connection.registry_url or "")
    if alone:
        _refuse_unknown(settings)
        urls += [connection.registry_url] if connection.registry_url else []
    bases: dict[Origin, list[str]] = {}
    for url in urls:
        origin = origin_of(url)
        if origin is not None and (alone or origin == own or origin.scheme == "http"):
            bases.setdefault(origin, []).append(base_of(url))
    upstreams = [Upstream(origin, tuple(dict.fromkeys(paths)), _request(connection, origin == own)) for origin, paths in bases.items()]
    return Registries(tuple(upstreams), settings)


def direct_registries(program: ProgramRun) -> list[str]:
    """Return the registries that a program asks without kops, as its settings say, without logins."""
    through = {each.origin for each in program.registries.upstreams}
    urls = [url for value in (program.registries.settings or {}).values() for url in value.split(",")]
    return list(dict.fromkeys(origin.url for url in urls if (origin := origin_of(url)) and origin not in through))


def _request(connection: Connection, is_own: bool) -> dict[str, object]:
    """Return how a registry is asked: as the context says, without its login and certificate where it is not the context's."""
    found = http_settings(connection, "registry")
    return found if is_own else {name: value for name, value in found.items() if name in ("timeout", "verify")}


def _refuse_other(capture: Capture) -> None:
    what = other_registry(capture)
    if what is not None:
        raise Refused(
            f"the program asks a schema registry by {what}, which kops cannot pass on: without a network its serdes could not ask it",
            hint="leave out --no-network: what else the program calls is then seen and named",
        )


def _refuse_unknown(settings: dict[str, str]) -> None:
    for name, value in settings.items():
        if any(url.strip() and origin_of(url) is None for url in value.split(",")):
            raise Refused(
                f"the program's setting {name} names a schema registry that is not at an address of HTTP, which its serdes could not ask",
                hint="leave out --no-network",
            )
