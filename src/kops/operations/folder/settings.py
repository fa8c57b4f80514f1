"""Settings of brokers, groups and client metrics as files of a folder: one reader, one writer, one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kops.config.yaml_files import placed_documents
from kops.core.errors import ConfigError, UsageProblem
from kops.core.models import Setting
from kops.core.plan import CANNOT, Item, Plan
from kops.core.selection import names_owned
from kops.core.settings import BROKER, CLIENT_METRICS, DEFAULT_BROKER, GROUP, SettingsChange, own_settings, own_source, require_known, title
from kops.core.statefile.fields import Fields, config_text, known_fields, placed
from kops.core.topics.settings import in_kafkas_unit
from kops.operations.brokers.settings import DEFAULT, brokers_named, own_stay, require_alterable
from kops.operations.client_metrics.subscriptions import SETTINGS
from kops.operations.groups.settings import require_settings
from kops.operations.services import Services
from kops.operations.settings.change import describe, plan_settings

THROTTLES = ".replication.throttled.rate"
"""Settings of brokers that reassignments set and remove."""
Found = Mapping[str, Mapping[str, Setting]]


class Declared(NamedTuple):
    """The settings of one thing, as a file declares them.

    :param config: where they stand in the file
    """

    settings: dict[str, str]
    config: Fields


@dataclass(frozen=True)
class SettingsFile:
    """A file of documents with a name and ``config``.

    :param kind: BROKER, GROUP or CLIENT_METRICS
    :param field: of the name
    :param names: returns everything that may have settings, ``DEFAULT_BROKER`` before the brokers
    :param check: refuses settings, given all that there are of such a thing
    """

    kind: str
    field: str
    names: Callable[[Services], Sequence[str]]
    check: Callable[[Mapping[str, str], Mapping[str, Setting]], None]

    def export(self, services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Return what has settings of its own; without secrets, and without the throttles of reassignments."""
        found = describe(services, self.kind, self.names(services))
        own = {name: self._own(name, found) for name in found}
        documents = [{self.field: self._shown(name), "config": settings} for name, settings in own.items() if settings]
        return documents, tuple(f"{each} left out: it is a secret" for name in found for each in self._secrets(name, found))

    def plan(self, services: Services, file: str) -> Sequence[Plan[SettingsChange]]:
        """Plan to set what a file declares.

        :raises ConfigError: for a setting or value that there cannot be, naming the document
        :raises Refused: for a secret, and for what only a restart can change
        """
        declared = self._read(file)
        brokers = self.names(services) if self.kind == BROKER else ()
        there = [name for name in declared if not brokers or name in brokers]
        like = {name: brokers[1] if (self.kind, name) == (BROKER, DEFAULT_BROKER) else name for name in there}
        found = describe(services, self.kind, like.values())
        for name in there:
            with placed(declared[name].config, ""):
                self.check(declared[name].settings, found[like[name]])
        everywhere = declared.get(DEFAULT_BROKER) if brokers else None
        warnings = own_stay(services, map(int, brokers[1:]), everywhere.settings) if everywhere else ()
        try:
            made = plan_settings(services, self.kind, {name: declared[name].settings for name in there}, warnings=warnings)
        except ConfigError:
            raise
        except UsageProblem as problem:
            raise ConfigError(f"{file}: {problem.message}", hint=problem.hint, file=file) from problem
        missing = [Item(title(self.kind, name), CANNOT, reason="not in service") for name in declared if name not in there]
        return [replace(made, items=(*made.items, *missing))]

    def prune(self, services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[SettingsChange]]:
        """Plan to remove the settings of what globs match and the file does not declare; secrets stay."""
        names = {self._shown(name): name for name in self.names(services)}
        doomed = sorted(names_owned(owns, names) - {self._shown(name) for name in self._read(file)})
        found = describe(services, self.kind, [names[each] for each in doomed])
        removed: dict[str, dict[str, str | None]] = {name: dict.fromkeys(own) for name in found if (own := self._own(name, found))}
        kept = [f"{each} stays: it is a secret, which undo could not restore" for name in found for each in self._secrets(name, found)]
        return [plan_settings(services, self.kind, removed, notes=kept)] if removed or kept else []

    def _own(self, name: str, found: Found) -> dict[str, str]:
        own = own_settings(found[name], own_source(self.kind, name))
        return {key: value for key, value in own.items() if not found[name][key].sensitive and not key.endswith(THROTTLES)}

    def _secrets(self, name: str, found: Found) -> Iterable[str]:
        own = own_settings(found[name], own_source(self.kind, name))
        return [f"{key} of {title(self.kind, name)}" for key in own if found[name][key].sensitive]

    def _shown(self, name: str) -> str:
        return DEFAULT if (self.kind, name) == (BROKER, DEFAULT_BROKER) else name

    def _read(self, file: str) -> dict[str, Declared]:
        return self.parse(placed_documents(Path(file), needed=f"{self.kind} setting", missing_ok=True))

    def parse(self, documents: Iterable[tuple[str, Any]]) -> dict[str, Declared]:
        """Read settings by the name of what has them.

        :param documents: place (for messages) and YAML of each document, whose scalars are the texts as written
        :raises ConfigError: naming the document and the field
        """
        declared: dict[str, Declared] = {}
        for place, body in documents:
            fields = known_fields(place, "", body, (self.field, "config"), f"{self.kind} settings")
            name = fields.exact(self.field)
            if self.kind == BROKER:
                name = _broker(fields, name)
            fields.refuse_second(self.field, self._shown(name), set(map(self._shown, declared)))
            config = fields.inside("config")
            settings = {}
            for key in config.body:
                with placed(config, key):
                    settings[key] = in_kafkas_unit(key, config_text(config, key).strip())
            if not settings:
                raise fields.wrong("config", "is empty")
            declared[name] = Declared(settings, config)
        return declared


def _broker(fields: Fields, name: str) -> str:
    if name == DEFAULT:
        return DEFAULT_BROKER
    if not (name.isascii() and name.isdecimal()):
        raise fields.wrong(fields.path("broker"), f"is {name}", f"the id of a broker, or {DEFAULT} for all of them")
    return name.lstrip("0") or "0"


BROKERS = SettingsFile(
    BROKER, "broker", lambda services: [DEFAULT_BROKER, *map(str, sorted(brokers_named(services, ())))], require_alterable
)
GROUPS = SettingsFile(GROUP, "name", lambda services: services.kafka.settings.names(GROUP), require_settings)
SUBSCRIPTIONS = SettingsFile(
    CLIENT_METRICS,
    "name",
    lambda services: services.kafka.settings.names(CLIENT_METRICS),
    lambda settings, _found: require_known(settings, SETTINGS, "client-metrics", hint=f"they are {', '.join(SETTINGS)}"),
)
