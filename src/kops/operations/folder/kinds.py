"""The kinds of things in a folder, in the order in which they are applied: what others need comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.plan import Plan
from kops.operations.folder import acls, connectors, quotas, schemas, topics, users
from kops.operations.folder.settings import BROKERS, GROUPS, SUBSCRIPTIONS, SettingsFile
from kops.operations.services import Services


@dataclass(frozen=True)
class Kind:
    """One kind of things, a file of YAML documents each.

    :param name: of the file, and in a manifest: ``topics``
    :param noun: begins the targets of a plan: ``topic orders``
    :param lacks: says why a session reaches none, such as no Connect in the context; empty if it does
    :param export: returns what there is as documents, sorted, and sentences on what is left out
    :param plan: plans to bring things in line with a file; nothing is removed
    :param prune: plans to remove what globs match and the file, which may be missing, does not declare
    :param prefix: regular expression of the parts of a name that say only what kind of name it is: a glob needs more than those
    """

    name: str
    noun: str
    lacks: Callable[[Services], str]
    export: Callable[[Services], tuple[list[dict[str, Any]], tuple[str, ...]]]
    plan: Callable[[Services, str], Sequence[Plan[Any]]]
    prune: Callable[[Services, Sequence[str], str], Sequence[Plan[Any]]]
    prefix: str = ""

    @property
    def file(self) -> str:
        return f"{self.name}.yaml"


def _nothing(_services: Services) -> str:
    return ""


def _no_connect(services: Services) -> str:
    return "" if services.connection.connect_urls else "the context has no connect_urls"


def _no_registry(services: Services) -> str:
    return "" if services.connection.registry_url else "the context has no registry_url"


def _settings(name: str, of: SettingsFile) -> Kind:
    return Kind(name, "settings of", _nothing, of.export, of.plan, of.prune)


KINDS = (
    _settings("brokers", BROKERS),
    Kind("topics", "topic", _nothing, topics.export, topics.plan, topics.prune),
    _settings("groups", GROUPS),
    _settings("client-metrics", SUBSCRIPTIONS),
    Kind("quotas", "quota of", _nothing, quotas.export, quotas.plan, quotas.prune, prefix="(, )?(default )?(user|client-id|ip) "),
    Kind("users", "user", _nothing, users.export, users.plan, users.prune),
    Kind("acls", "ACL", _nothing, acls.export, acls.plan, acls.prune, prefix="^[^:]*:"),
    Kind("schemas", "schema", _no_registry, schemas.export, schemas.plan, schemas.prune),
    Kind("connectors", "connector", _no_connect, connectors.export, connectors.plan, connectors.prune),
)
NAMES = {kind.name: kind.prefix for kind in KINDS}
