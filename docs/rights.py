"""The rights of each verb: ``python docs/rights.py`` makes ``rights.md`` of ``kops.core.acls.verbs``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kops.core.acls.verbs import OF_VERBS, SILENT, as_entry

PAGE = Path(__file__).resolve().parent / "rights.md"
WITHOUT = {
    "what carries out a plan needs what the verb needs that made it": ("apply", "undo", "journal finish", "replay resume"),
    "they look at this machine only": (
        *("completion", "doctor", "help", "version", "plugins list", "journal list", "journal show", "streams capture"),
        *("context add", "context import", "context list", "context remove", "context show", "context use"),
    ),
    "they start and stop brokers of their own": ("demo", "sandbox down", "sandbox logs", "sandbox status", "sandbox up"),
    "they ask a schema registry, and brokers for no more than the id of their cluster": (
        *("schemas check", "schemas config", "schemas delete", "schemas list", "schemas register", "schemas show"),
    ),
    "they ask Connect's workers": (
        *("connect loggers list", "connect loggers set", "connect pause", "connect plugins add", "connect plugins describe"),
        *("connect plugins list", "connect restart", "connect resume", "connect stop", "connect workers"),
    ),
    "not run so; brokers check `ALTER` on the cluster": ("brokers unregister", "cluster quorum add", "cluster quorum remove"),
}
"""Why verbs have no rights in the table."""
INTRODUCTION = """\
# Rights

Which ACLs each verb needs on a cluster with an authorizer. `kops acls grant PRINCIPAL --kops "VERB" --on-topic TOPIC --on-group GROUP`
gives these.

A long test (`tests/broker/test_rights_of_verbs.py`) runs each verb on a broker with Kafka's StandardAuthorizer and reads in its log what
the authorizer was asked. Then it runs the verb as a user with exactly these rights, and without each of them: kops names the
missing right, and nothing has changed. Without a right of the last column no error comes: brokers leave out what may not be seen, and the
verb sees less.

`ALTER`, `DELETE`, `READ` and `WRITE` include `DESCRIBE`; `ALTER_CONFIGS` includes `DESCRIBE_CONFIGS`. Rights on topics and groups are
those on the named ones. Verbs that look at every group, such as `topics delete` at those that read the topic, need it on all groups, and
say which they could not ask. Those that look at every topic, such as `cluster health` and `brokers list`, name the topics that may not be
described, which only log directories show; `brokers drain`, `demote` and `unregister` are refused until they may be. Brokers leave out what
a group has committed in topics that may not be described: `groups delete` names such topics, or says that it cannot know them, since undo
does not restore what it did not see; `offsets export` and `state snapshot` hold less then. `state repartition` and `state restore` commit
offsets last: where `READ` for that is missing they end as partial, and `journal finish` completes them.
`CREATE` and `DELETE` of a topic may be those of the cluster.

A verb with an option has a row of its own where the option makes it ask for more, or less: `kops acls grant --kops "topics list --long"`.
In brackets stands which topics need a right where not all do: the source or the target, the input or the changelog (with the topics that
begin with its name and take its place for a while), or one that no option names, such as `kops-progress`. The grant gives such a right on
every topic of `--on-topic`, and rights on groups and transactional ids that kops makes, such as `kops-replay-*`, by their prefix. Where
`kops-progress` does not exist yet, the first replay creates it and needs `CREATE` too. Without `DELETE` on its groups a replay leaves them
behind. Folders and files ask for what they declare; the rows of `apply` and `diff` are those of a new topic.

"""
REST = """
These have no row:

"""


def page() -> str:
    """Return the page."""
    rows = ["| Verb | Needs | Sees less without |", "| --- | --- | --- |"]
    for verb, rights in sorted(OF_VERBS.items()):
        needed = _cell(right for right in rights if not right.startswith(SILENT))
        rows.append(f"| `{verb}` | {needed or 'nothing'} | {_cell(right for right in rights if right.startswith(SILENT))} |")
    rest = [f"- {', '.join(f'`{verb}`' for verb in verbs)}: {reason}" for reason, verbs in WITHOUT.items()]
    return INTRODUCTION + "\n".join(rows) + "\n" + REST + "\n".join(rest) + "\n"


def _cell(rights: Iterable[str]) -> str:
    by_type: dict[str, list[str]] = {}
    for right in rights:
        kind, operation, place = as_entry(right)
        by_type.setdefault(kind, []).append(f"{operation} ({place})" if place else operation)
    return "; ".join(f"{kind}: {', '.join(found)}" for kind, found in by_type.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
