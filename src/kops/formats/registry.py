"""The built-in formats by name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from kops.core.errors import UsageProblem
from kops.core.schemas.models import KIND_OF
from kops.formats.base import Format
from kops.formats.primitives import Bytes, Float, Integer, Json, String, Uuid

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            String(),
            Bytes(),
            Integer("long", ">q"),
            Integer("int", ">i"),
            Integer("short", ">h"),
            Float("double", ">d"),
            Float("float", ">f"),
            Json(),
            Uuid(),
        )
    }
)

OF_REGISTRY = tuple(KIND_OF)
"""Formats that need schemas from a registry, and so a cluster."""


def unknown_format(name: str, known: Mapping[str, object]) -> UsageProblem:
    """Return the error for an unknown name, with the nearest match."""
    if name in OF_REGISTRY:
        return UsageProblem(f"{name} is not read here", hint=f"it needs a schema registry: `kops records consume --value {name}`")
    names = [*known, *OF_REGISTRY]
    near = get_close_matches(name.lower(), names, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    return UsageProblem(f"there is no format {name!r}", hint=f"{guess}formats: {', '.join(names)}")
