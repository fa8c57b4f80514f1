"""YAML that people write: state files, declarations, positions. One reader for all, which leaves dates as text.

Plain scalars are text, numbers, booleans or null. A date remains text: PyYAML would turn it into a datetime, or fail on one that does not
exist. A duplicate key is refused: otherwise the wrong value could win silently.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from kops.core.errors import ConfigError

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def read_documents(file: Path, *, what: str = "", hint: str | None = None, wrong: str | None = None) -> list[Any]:
    """Return the documents of a YAML file.

    :param what: what the file is, for messages: ``state file``
    :param hint: hint for a file that cannot be read
    :param wrong: hint for a file that is not valid YAML
    :raises ConfigError: naming the file and the line
    """
    named = f"the {what} {file}" if what else str(file)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {named}: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error.reason} at byte {error.start}", hint="save it as UTF-8") from error
    return parse_documents(text, str(file), hint=wrong)


def parse_documents(text: str, place: str, *, hint: str | None = None) -> list[Any]:
    """Return the documents of a YAML text.

    :param place: where the text is from, for messages
    :raises ConfigError: naming the place and the line
    """
    import yaml

    try:
        return list(yaml.load_all(text, Loader=_loader()))
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        at = f"{place}, line {where.line + 1}" if where else place
        raise ConfigError(f"{at}: not YAML: {getattr(error, 'problem', None) or error}", hint=hint, file=place) from error
    except RecursionError as error:
        raise ConfigError(f"{place}: not YAML that can be read: it is nested too deeply", hint=hint, file=place) from error


@cache
def _loader() -> Any:
    """Return a safe loader that keeps dates as text, and whose constructors raise only errors of YAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if not isinstance(key, yaml.ScalarNode):
                    continue  # no field has such a name, so it is refused later
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
                name = node.tag.rpartition(":")[2]
                shown = f"{node.value!r} is not a valid {name}" if isinstance(node, yaml.ScalarNode) else f"this is not a valid {name}"
                raise yaml.constructor.ConstructorError(None, None, shown, node.start_mark) from error

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_constructor(_TIMESTAMP, _as_written)
    return Loader


def _as_written(loader: Any, node: Any) -> Any:
    return loader.construct_scalar(node)
