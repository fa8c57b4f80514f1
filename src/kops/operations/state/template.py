"""``kops state init``: the template of a state file, with the stores of an application whose changelogs are on the cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.errors import NotFound, UsageProblem
from kops.core.statefile.fields import nearest
from kops.core.statefile.template import StoreSeen
from kops.operations.services import Services
from kops.operations.state.snapshot import guessed_type
from kops.operations.streams.inspection import Inspection, inspect_application


def stores_seen(services: Services, application: str, names: Sequence[str]) -> tuple[Inspection, list[StoreSeen]]:
    """Return what is known of an application, and its stores that have a changelog. Nothing is changed, and nothing joins its group.

    :param names: of the stores; all when empty
    :raises NotFound: when there is no such application, or it has no changelog
    :raises UsageProblem: when it has no such store
    """
    look = inspect_application(services, application)
    changelogs = {store.store: store.changelog for store in look.stores if store.changelog in look.partitions}
    if not changelogs:
        hint = "an application without stores needs no state file; `kops topics list '*-changelog'` shows the changelogs that exist"
        raise NotFound(f"{application} has no changelog on this cluster", hint=hint)
    for name in names:
        if name not in changelogs:
            raise UsageProblem(f"{application} has no store {name}", hint=f"{nearest(name, changelogs)}stores: {', '.join(changelogs)}")
    chosen = {name: topic for name in names or changelogs if (topic := changelogs[name])}
    settings = services.kafka.topics.settings(chosen.values())
    return look, [StoreSeen(name, topic, *guessed_type(settings[topic])) for name, topic in chosen.items()]
