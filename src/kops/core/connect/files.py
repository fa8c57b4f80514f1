"""Connectors as declared in files: one document per connector, and documents that list the names that the files own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.statefile.fields import Fields, config_text, owned_globs

CLASS = "connector.class"
_WRAPPED = ("name", "config")


@dataclass(frozen=True)
class DeclaredConnector:
    """A connector as declared in a file.

    :param file: absolute path of the declaring file
    :param place: file and document, for messages
    """

    name: str
    config: Mapping[str, str]
    file: str
    place: str


@dataclass(frozen=True)
class Declaration:
    """The contents of the files of one command.

    :param owns: globs of the names that belong to the files: undeclared connectors among them may be pruned
    """

    connectors: tuple[DeclaredConnector, ...] = ()
    owns: tuple[str, ...] = ()


def parse_declaration(documents: Sequence[tuple[str, str, Any]]) -> Declaration:
    """Parse the documents of some files.

    A document is either what Connect's REST API accepts (``name`` and ``config``), or the settings including ``name``.

    :param documents: file, place (for messages) and content of each, whose scalars are the texts as written
    :raises ConfigError: naming the file and the setting
    """
    found: dict[str, DeclaredConnector] = {}
    owns: list[str] = []
    for file, place, body in documents:
        if isinstance(body, Mapping) and "owns" in body:
            owns += owned_globs(Fields(place, "", body, ("owns",)), "connector")
            continue
        one = _connector(file, place, body)
        Fields(place, "", body).refuse_second("name", one.name, found)
        found[one.name] = one
    return Declaration(tuple(found.values()), tuple(dict.fromkeys(owns)))


def _connector(file: str, place: str, body: Any) -> DeclaredConnector:
    fields = Fields(place, "", body)
    name = fields.needed("name", "the name of the connector")
    if isinstance(fields.body.get("config"), Mapping):
        for other in fields.body:
            if other not in _WRAPPED:
                raise fields.wrong(other, "is next to config", "move it inside config; only name belongs next to config")
        fields = fields.inside("config")
    config = {key: config_text(fields, key) for key in fields.body if key != "name"}
    inner = fields.body.get("name")
    if inner is not None and str(inner) != name:
        raise fields.wrong("name", f"is {inner}, and the document's name is {name}", "remove it from config")
    if not config.get(CLASS):
        raise fields.wrong(CLASS, "is missing", "the class of the connector; `kops connect plugins list` shows the available ones")
    return DeclaredConnector(name, config, file, place)
