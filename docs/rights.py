"""The rights of each verb: ``python docs/rights.py`` makes ``rights.md`` of ``kops.core.acls.verbs``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kops.core.acls.verbs import OF_VERBS, SILENT, as_entry

PAGE = Path(__file__).resolve().parent / "rights.md"
INTRODUCTION = f"""\
# Rights

Which ACLs each verb needs on a cluster with an authorizer. `kops acls grant PRINCIPAL --kops "VERB" --on-topic TOPIC --on-group GROUP`
gives exactly these.

A long test (`tests/broker/test_rights_of_verbs.py`) runs each verb on a broker with Kafka's StandardAuthorizer and reads in its log what
the authorizer was asked. Then it runs the verb as a user with exactly these rights, and without each of them: kops names the
missing right, and nothing has changed. Without a right of the last column no error comes: brokers leave out what may not be seen, and the
verb sees less.

`ALTER`, `DELETE`, `READ` and `WRITE` include `DESCRIBE`; `ALTER_CONFIGS` includes `DESCRIBE_CONFIGS`. Rights on topics and groups are
those on the named ones. Verbs that look at every group, such as `topics delete` at those that read the topic, need it on all groups, and
say which they could not ask. Brokers leave out what a group has committed in topics that may not be described: so `groups delete` does not
restore that when it is undone. `CREATE` and `DELETE` of a topic may be those of the cluster.

The {len(OF_VERBS)} verbs below were run so. The others were not: verbs of Connect and of schema registries need no rights of Kafka but
for the topics that they name, those of `state`, `replay`, `streams` and `changelog` read topics (`READ`) and groups (`DESCRIBE`), and
write what their plans show (`WRITE`, and `READ` on groups whose offsets move).

"""


def page() -> str:
    """Return the page."""
    rows = ["| Verb | Needs | Sees less without |", "| --- | --- | --- |"]
    for verb, rights in sorted(OF_VERBS.items()):
        needed = _cell(right for right in rights if not right.startswith(SILENT))
        rows.append(f"| `{verb}` | {needed or 'nothing'} | {_cell(right for right in rights if right.startswith(SILENT))} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


def _cell(rights: Iterable[str]) -> str:
    by_type: dict[str, list[str]] = {}
    for right in rights:
        kind, operation = as_entry(right)
        by_type.setdefault(kind, []).append(operation)
    return "; ".join(f"{kind}: {', '.join(found)}" for kind, found in by_type.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
