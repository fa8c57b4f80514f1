"""What speaks for a type of store, or against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    :param type: the type that it supports; empty: none, it is shown with every guess
    :param weight: how much; negative: it speaks against it
    :param sentence: what was seen, without a full stop; empty: not worth saying
    """

    type: str
    weight: int
    sentence: str = ""
