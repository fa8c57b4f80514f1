"""The public API for plugins: these names stay stable, whatever changes inside kops.

A plugin is a distribution with entry points in ``kops.commands.v1`` (name -> ``click.Command``), ``kops.reducers.v1``
(name -> :class:`Reducer`, or a function ``(key, value, aggregate)``) and ``kops.formats.v1`` (name -> :class:`Format`).
A command is made with ``cls=Command`` so that it takes ``-o``, ``-c``, ``-B`` and the rest, and gets its
:class:`Session` through ``pass_session``. Errors of these classes become a message, a hint and an exit code.
"""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command, Group
from kops.cli.frame.session import Session
from kops.core.errors import ConfigError, KopsError, NotFound, OperationFailed, Refused, UndecodableRecord, UsageProblem
from kops.core.models import Bounds, Topic, TopicPartition
from kops.core.murmur2 import murmur2, partition_for
from kops.core.records.models import OffsetRange, Ranges, Record
from kops.core.statefile.reducers import FunctionReducer, Reducer
from kops.formats.base import Format, Place, as_text_or_base64, decode_at
from kops.output.table import Column
from kops.plugins.loader import load_format as format_named

pass_session = click.make_pass_decorator(Session)
"""Hands the command its :class:`Session`: ``session.kafka``, ``session.note(text)``, ``session.render(rows, columns)``."""

__all__ = [
    "Bounds",
    "Column",
    "Command",
    "ConfigError",
    "Format",
    "FunctionReducer",
    "Group",
    "KopsError",
    "NotFound",
    "OffsetRange",
    "OperationFailed",
    "Place",
    "Ranges",
    "Record",
    "Reducer",
    "Refused",
    "Session",
    "Topic",
    "TopicPartition",
    "UndecodableRecord",
    "UsageProblem",
    "as_text_or_base64",
    "decode_at",
    "format_named",
    "murmur2",
    "partition_for",
    "pass_session",
]
