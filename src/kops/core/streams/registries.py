"""The schema registries that a program asks, as far as its capture says. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from kops.core.streams.capture import Capture, Coder, Sink, Source

_CONFLUENT = "schema.registry.url"
_IN_MEMORY = "mock:"
_PORTS = {"http": 80, "https": 443}
_OTHER_SETTINGS = {"apicurio.registry.url": "Apicurio's own API"}
_OTHER_CLASSES = {
    "com.amazonaws.services.schemaregistry.": "AWS Glue",
    "com.microsoft.azure.schemaregistry.": "Azure's schema registry",
    "com.azure.schemaregistry.": "Azure's schema registry",
    "com.hortonworks.registries.": "Cloudera's schema registry",
    "io.apicurio.registry.": "Apicurio's own API",
    "org.springframework.cloud.schema.": "Spring's schema registry",
}


@dataclass(frozen=True)
class Origin:
    """Where a registry is."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port != _PORTS[self.scheme] else "")

    @property
    def address(self) -> str | None:
        """Return its IPv4 address, if that is how it is named."""
        if self.host == "localhost":
            return "127.0.0.1"
        try:
            return str(ipaddress.IPv4Address(self.host))
        except ValueError:
            return None


def origin_of(url: str) -> Origin | None:
    """Return where an address leads; None: not by HTTP."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return Origin(parts.scheme, parts.hostname, port or _PORTS[parts.scheme])


def base_of(url: str) -> str:
    """Return the path that an address has, without a slash at its end."""
    return urlsplit(url.strip()).path.rstrip("/")


def redirected(urls: str, places: Mapping[Origin, str]) -> str:
    """Return addresses, with commas between them, that lead to other places; their logins and paths stay.

    :param places: HOST:PORT of HTTP, and maybe a path
    """
    found = []
    for url in urls.split(","):
        origin, parts = origin_of(url), urlsplit(url.strip())
        login, at, _ = parts.netloc.rpartition("@")
        moved = places.get(origin) if origin else None
        found.append(url.strip() if moved is None else f"http://{login}{at}{moved}{parts.path}")
    return ",".join(found)


def registry_settings(capture: Capture) -> dict[str, str]:
    """Return the program's settings that name registries with Confluent's API, with commas between addresses."""
    found = {}
    for name, value in capture.settings.given.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value or "")
        if name.endswith(_CONFLUENT) and text and not text.strip().startswith(_IN_MEMORY):
            found[name] = text
    return found


def other_registry(capture: Capture) -> str | None:
    """Return a registry with another API that the program asks, and how that is known; None: it is not seen to ask one."""
    for name, value in capture.settings.given.items():
        for end, what in _OTHER_SETTINGS.items():
            if name.endswith(end) and not str(value).startswith(_IN_MEMORY):
                return f"{what} ({name})"
    classes = [str(value) for value in capture.settings.given.values()]
    for name in (*classes, *_coders(capture)):
        for start, what in _OTHER_CLASSES.items():
            if name.startswith(start):
                return f"{what} ({name})"
    return None


def _coders(capture: Capture) -> Iterator[str]:
    for node in capture.nodes:
        if isinstance(node, (Source, Sink)):
            yield from _names(node.key)
            yield from _names(node.value)


def _names(coder: Coder | None) -> Iterator[str]:
    if coder is not None:
        yield coder.name
        for inner in coder.inner.values():
            yield from _names(inner)
