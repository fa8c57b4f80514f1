"""Evidence for or against a type of store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    :param type: the type of store that it is about; empty: none, it is shown with every guess
    :param weight: its strength; negative: evidence against the type
    :param sentence: what was observed, without a full stop; empty: not worth showing
    """

    type: str
    weight: int
    sentence: str = ""
