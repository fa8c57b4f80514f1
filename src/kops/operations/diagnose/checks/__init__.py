"""The checks of ``kops diagnose``, a module each: its ``CHECK`` is found here, and nothing else has to name it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from kops.operations.diagnose.check import CLUSTER, CONNECTOR, GROUP, TOPIC, Check

_SUBJECTS = (CLUSTER, TOPIC, GROUP, CONNECTOR)


@cache
def every_check() -> tuple[Check, ...]:
    """Return all checks, those of the cluster first: what others may follow from."""
    names = [module.name for module in pkgutil.iter_modules(__path__, f"{__name__}.")]
    found: list[Check] = [importlib.import_module(name).CHECK for name in sorted(names)]
    return tuple(sorted(found, key=lambda check: _SUBJECTS.index(check.subject)))
