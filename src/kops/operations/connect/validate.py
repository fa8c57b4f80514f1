"""``kops connect validate``: configurations validated by the plugins on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kops.core.connect.files import CLASS, DeclaredConnector
from kops.core.connect.secrets import has_reference, masked, scrubbed, secret_texts
from kops.core.connect.topics import used_topics
from kops.core.errors import NotFound, OperationFailed, UsageProblem
from kops.operations.connect.files import read_declaration
from kops.operations.connect.plugins import ALIKE, install_hint, plugin_class, plugin_type
from kops.operations.connect.topics import TopicLook
from kops.operations.services import Services

Row = dict[str, Any]
ERROR, WARNING = "error", "warning"
OTHER_NAME = "letters, digits, dots, dashes and underscores work everywhere"
_MOST_RECOMMENDED = 20
_REFERENCES = "each worker resolves references itself: their targets must exist there, and their provider must be in config.providers"
_PASSED_ON = ("transforms.", "predicates.", "producer.override.", "consumer.override.", "admin.override.", "topic.creation.")
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.", "config.providers")


def validate_files(services: Services, paths: Sequence[str]) -> tuple[int, list[Row], tuple[str, ...]]:
    """Return how many connectors the files declare, what is wrong with them, and what is not known of their topics; nothing is created.

    :raises ConfigError: naming file and setting, when a file itself is wrong
    """
    declared, look = read_declaration(paths).connectors, TopicLook(services)
    return len(declared), [row for one in declared for row in problems(services, one, look)], look.notes


def problems(services: Services, declared: DeclaredConnector, look: TopicLook) -> Iterator[Row]:
    """Yield each invalid setting of a connector, with its plugin's message and recommended values, and the topics that it lacks."""
    if obstacle := services.connect.obstacle(declared.name):
        text = f"a connector of this name could be created, but not changed or deleted: {obstacle}"
        yield {**_row(declared, "name", ERROR, text, OTHER_NAME), "value": declared.name}
    try:
        plugin_class(services, declared.config[CLASS])
    except NotFound as missing:
        meant = [f"{text.split('? ')[0]}?" for text in [missing.hint or ""] if "? " in text]
        yield _row(declared, CLASS, ERROR, missing.message, " ".join([*meant, install_hint(declared.config[CLASS])]))
        return
    try:
        answer = services.connect.validate(declared.config[CLASS], {**declared.config, "name": declared.name})
    except OperationFailed as refused:
        unresolved = _unresolved(declared, refused.message)
        if unresolved is None:
            raise
        yield _row(declared, unresolved, ERROR, refused.message, _REFERENCES)
        return
    passwords = {str(each["definition"]["name"]) for each in answer.get("configs") or () if each["definition"].get("type") == "PASSWORD"}
    secrets, shown = secret_texts(declared.config, passwords), masked(declared.config, passwords)
    known = set()
    for each in answer.get("configs") or ():
        value, definition = each.get("value") or {}, each.get("definition") or {}
        name = str(value.get("name") or definition.get("name") or "")
        known.add(name)
        if value.get("errors"):
            texts = "; ".join(scrubbed(str(text), secrets) for text in value["errors"])
            possible = list(dict.fromkeys(str(one) for one in value.get("recommended_values") or ()))
            near = get_close_matches(shown.get(name) or "", possible, n=1, cutoff=ALIKE)
            hint = f"did you mean {near[0]}?" if near and near[0] != shown.get(name) else None
            yield {**_row(declared, name, ERROR, texts, hint), "value": shown.get(name), "recommended": possible[:_MOST_RECOMMENDED]}
    yield from _unknown(declared, known)
    used = used_topics(plugin_type(services, declared.config[CLASS]), declared.config)
    for lack in look.lacks(declared.name, used):
        if not lack.creatable:
            yield _row(declared, lack.setting, WARNING, lack.text, lack.hint)


def _unresolved(declared: DeclaredConnector, message: str) -> str | None:
    """Return the setting whose reference (``${file:...}``) a worker could not resolve, if that is what the message says."""
    named = [name for name, value in declared.config.items() if has_reference(value)]
    if not named or "ConfigException" not in message:
        return None
    return next((name for name in named for place in declared.config[name].split(":")[1:2] if place and place in message), named[0])


def _unknown(declared: DeclaredConnector, known: set[str]) -> Iterator[Row]:
    """Yield the settings that neither the plugin nor Connect knows: most of them are typos."""
    for name in declared.config:
        if name not in known and not name.startswith((*_PASSED_ON, *_CONVERTERS)):
            near = get_close_matches(name, known, n=1)
            if near and near[0] not in declared.config:
                yield _row(
                    declared, name, WARNING, "the plugin does not know this setting, so it has no effect", f"did you mean {near[0]}?"
                )


def _row(declared: DeclaredConnector, setting: str, level: str, message: str, hint: str | None = None) -> Row:
    return {
        "connector": declared.name,
        "setting": setting,
        "level": level,
        "value": masked(declared.config).get(setting),
        "message": " ".join(message.split()),
        "recommended": [],
        "hint": hint,
        "place": declared.place,
    }


def refuse_wrong(rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse configurations that have errors.

    :raises UsageProblem: naming the first of them
    """
    wrong = [row for row in rows if row["level"] == ERROR]
    if wrong:
        first, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UsageProblem(
            f"{first['place']}: {first['connector']}: {first['setting']}: {first['message']}{more}",
            hint=first["hint"] or "`kops connect validate` shows all of them, with recommended values",
            problems=[dict(row) for row in wrong],
        )
