"""What a person chooses of a computation, for the verbs of ``kops state`` that compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.times import Position
from kops.operations.state.cut import COMMITTED


@dataclass(frozen=True)
class How:
    """How stores are computed.

    :param at: up to where the input counts: ``COMMITTED``, the end, or a time
    :param skip_undecodable: pass over records that are not of the formats
    :param accept_inexact: compute also what cannot be exact (classes C and D)
    :param archives: paths of archives of input topics, which are read before the topics
    :param damaged: store -> partitions of its changelog whose keys say nothing about what was computed; None: all of them
    :param has_witnesses: the changelogs as they are tell whether what was computed is right
    :param snapshot: path of a snapshot to start from, so that only what was read since is computed
    :param compared: path of a snapshot that stands for the changelogs, up to whose offsets the stores are computed
    :param master: where Spark runs: a master, or ``sc://HOST:PORT``; None: where the context says, or here
    """

    at: Position = COMMITTED
    skip_undecodable: bool = False
    accept_inexact: bool = False
    archives: tuple[str, ...] = ()
    snapshot: str | None = None
    compared: str | None = None
    master: str | None = None
    damaged: Mapping[str, frozenset[int] | None] = field(default_factory=dict)
    has_witnesses: bool = True
