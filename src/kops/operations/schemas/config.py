"""``kops schemas config``: compatibility level and mode, of the registry and of subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kops.core.errors import KopsError, UsageProblem, answer_or_error
from kops.core.plan import Json, Plan
from kops.gateways.registry.subjects import COMPATIBILITY, MODE, Subjects
from kops.operations.protocol.entries import Entries, EntriesMutation, Entry
from kops.operations.services import Services

GLOBAL = "global"


def config_rows(services: Services, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the own and the effective level and mode of subjects, the registry's first; None where the registry has no modes.

    :param names: of subjects
    """
    subjects = Subjects(services.connection, services.permit)
    rows = []
    for subject in (None, *names):
        row: dict[str, Any] = {"subject": subject}
        for what in (COMPATIBILITY, MODE):
            own = _own(subjects, what, subject)
            common = own if subject is None or own is not None else _own(subjects, what, None)
            row |= {what: common, f"{what}_own": own is not None}
        rows.append(row)
    return rows


def _own(subjects: Subjects, what: str, subject: str | None) -> str | None:
    found = answer_or_error(lambda: subjects.setting(what, subject))
    if isinstance(found, KopsError):
        if what == MODE:  # some registries have none
            return None
        raise found
    return found


def plan_config(
    services: Services, subject: str | None, *, compatibility: str | None = None, mode: str | None = None, remove: Sequence[str] = ()
) -> Plan[Entries]:
    """Plan to set or remove a level and a mode.

    :param subject: None: the registry's own
    :param remove: COMPATIBILITY, MODE or both
    :raises UsageProblem: when nothing is asked for, or something twice
    """
    wanted: dict[str, str | None] = {what: value for what, value in ((COMPATIBILITY, compatibility), (MODE, mode)) if value is not None}
    if twice := [what for what in remove if what in wanted]:
        raise UsageProblem(f"{twice[0]} is both set and removed", hint=f"pass --{twice[0]} or --remove {twice[0]}")
    wanted |= dict.fromkeys(remove)
    if not wanted:
        raise UsageProblem("nothing is to be changed", hint="pass --compatibility, --mode or --remove")
    if subject is None and remove:
        raise UsageProblem("the registry always has a level and a mode", hint="set another one, or name a subject")
    return CHANGE_CONFIG.plan(services, entries(subject, wanted), warnings=warnings_of(subject, wanted))


def warnings_of(subject: str | None, wanted: Mapping[str, str | None]) -> list[str]:
    """Say what a level and a mode entail."""
    warnings = []
    if wanted.get(COMPATIBILITY) == "NONE":
        warnings.append("with NONE, a schema is registered that readers or older records may not understand")
    if wanted.get(MODE, "READWRITE") not in ("READWRITE", None):
        warnings.append(f"with {wanted[MODE]}, producers that register their schemas by themselves fail")
    if wanted.get(MODE) == "IMPORT":
        warnings.append("registries refuse IMPORT where there are schemas")
    if subject is None:
        warnings.append("this counts for every subject without a level or mode of its own")
    return warnings


def entries(subject: str | None, wanted: Mapping[str, str | None]) -> dict[str, Entry]:
    """Return what :class:`ChangeConfig` changes; None removes."""
    title = GLOBAL if subject is None else f"subject {subject}"
    return {f"{title}: {what}": Entry({"subject": subject, "what": what}, value) for what, value in wanted.items()}


class ChangeConfig(EntriesMutation):
    name: ClassVar[str] = "schemas.config"
    what: ClassVar[str] = "setting of the registry"

    def place(self, services: Services) -> Json:
        return Subjects(services.connection, services.permit).registry.shown_url

    def read(self, services: Services, keys: Mapping[str, Json]) -> dict[str, Json]:
        subjects = Subjects(services.connection, services.permit)
        return {target: subjects.setting(key["what"], key["subject"]) for target, key in keys.items()}

    def read_back(self, services: Services, wanted: Mapping[str, Entry]) -> dict[str, Json]:
        """Count a value that equals the registry's own as set: some registries do not show that a subject has it too."""
        now, subjects = super().read_back(services, wanted), Subjects(services.connection, services.permit)
        hidden = {target: one.value for target, one in wanted.items() if now[target] is None and one.value is not None}
        return now | {target: value for target, value in hidden.items() if _own(subjects, wanted[target].key["what"], None) == value}

    def write(self, services: Services, entries: Mapping[str, Entry]) -> Mapping[str, KopsError | None]:
        subjects = Subjects(services.connection, services.permit)
        errors: dict[str, KopsError | None] = {}
        for target, one in entries.items():
            try:
                subjects.change(one.key["what"], one.key["subject"], one.value)
            except KopsError as error:
                errors[target] = error
            else:
                errors[target] = None
        return errors


CHANGE_CONFIG = ChangeConfig()
