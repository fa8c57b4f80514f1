"""Settings of what Kafka keeps settings for: topics, brokers, groups, client metrics. One rule for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.models import Setting
from kops.core.plan import Arguments, Json

TOPIC, BROKER, GROUP, CLIENT_METRICS = "topic", "broker", "group", "client metrics"
DEFAULT_BROKER = ""
"""The name of the settings that every broker takes which has none of its own."""
WORD_SETS = ("cleanup.policy",)
"""Settings whose words have no order."""

Settings = Mapping[str, "str | None"]
"""Settings by name: the value to set; None removes the own value."""


@dataclass(frozen=True)
class SettingsChange(Arguments):
    """Settings to change.

    :param kind: BROKER, GROUP or CLIENT_METRICS; those of topics are part of ``core.topics.changes.Changes``
    :param changes: settings by the name of what has them; ``DEFAULT_BROKER`` for all brokers
    """

    kind: str
    changes: Mapping[str, Settings]

    def as_json(self) -> Json:
        return {"kind": self.kind, "changes": {name: dict(settings) for name, settings in self.changes.items()}}

    @classmethod
    def of_json(cls, body: Json) -> SettingsChange:
        return cls(body["kind"], {name: dict(settings) for name, settings in body["changes"].items()})


def title(kind: str, name: str) -> str:
    """Return how to refer to what has settings: ``broker 1``, ``all brokers``."""
    return "all brokers" if (kind, name) == (BROKER, DEFAULT_BROKER) else f"{kind} {name}"


def own_source(kind: str, name: str) -> str:
    """Return the source of a setting's value that was set on the thing itself."""
    return "broker default" if (kind, name) == (BROKER, DEFAULT_BROKER) else kind


def own_settings(settings: Mapping[str, Setting], source: str = TOPIC) -> dict[str, str]:
    """Return the values that were set on the thing itself.

    :param source: see :func:`own_source`
    """
    return {name: setting.value or "" for name, setting in sorted(settings.items()) if setting.source == source}


def same_value(name: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a setting mean the same."""
    if name in WORD_SETS and one is not None and other is not None:
        return set(one.split(",")) == set(other.split(","))
    return one == other


def still_to_alter(found: Mapping[str, Setting], target: Settings, source: str = TOPIC) -> dict[str, str | None]:
    own = own_settings(found, source)
    return {name: value for name, value in target.items() if not same_value(name, value, own.get(name))}


def value_after(found: Mapping[str, Setting], name: str, value: str | None) -> str | None:
    """Return the effective value of a setting if its own value were ``value``; None if unknown."""
    return value if value is not None else found[name].inherited if name in found else None


def alteration(found: Mapping[str, Setting], target: Settings, source: str = TOPIC) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a plan shows of settings before and after a change: effective values, and where they come from."""

    def source_after(name: str, value: str | None) -> str:
        return source if value is not None else found[name].source if name in found and found[name].source != source else "inherited"

    known = {name: found.get(name) for name in target}
    before = {
        "settings": {name: setting.value if setting else None for name, setting in known.items()},
        "sources": {name: setting.source if setting else None for name, setting in known.items()},
    }
    after = {
        "settings": {name: value_after(found, name, value) for name, value in target.items()},
        "sources": {name: source_after(name, value) for name, value in target.items()},
    }
    return before, after


def changed_since(now: Mapping[str, Setting], target: Settings, before: Settings, source: str = TOPIC) -> list[str]:
    """Return the settings with neither the planned nor the previous value: another client has changed them."""
    strayed = set(still_to_alter(now, target, source)) & set(still_to_alter(now, before, source))
    return [f"{name}={now[name].value if name in now else 'not set'}" for name in sorted(strayed)]


def requested(
    settings: Mapping[str, str], remove: Sequence[str], canonical: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
) -> dict[str, str | None]:
    """Return the settings that a command line sets and removes.

    :param canonical: checks the values and returns them as Kafka shows them
    :raises UsageProblem: for one that is both set and removed, and if nothing is named
    """
    both = sorted(set(settings) & set(remove))
    if both:
        raise UsageProblem(f"{both[0]} is both set and removed", hint="leave --config or --delete-config of it out")
    if not settings and not remove:
        raise UsageProblem("nothing to change is named", hint="--config NAME=VALUE sets, --delete-config NAME removes")
    return {**canonical(settings), **dict.fromkeys(remove)}


def require_known(names: Iterable[str], known: Collection[str], what: str, *, hint: str | None = None) -> None:
    """Check that settings exist.

    :raises UsageProblem: for a name that does not, suggesting the most similar one
    """
    for name in names:
        if name not in known:
            import difflib

            meant = next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)), None)
            raise UsageProblem(f"there is no {what} setting {name}", hint=f"did you mean {meant}?" if meant else hint, setting=name)


def refuse_secrets(found: Mapping[str, Setting], target: Settings) -> None:
    """Refuse to set what brokers do not show again: plans and the journal are kept in files.

    :raises Refused: for the first such setting that has a value
    """
    for name, value in target.items():
        if value is not None and name in found and found[name].sensitive:
            raise Refused(f"{name} is a secret, and a plan would keep it in a file", hint="set it in the broker's server.properties")
