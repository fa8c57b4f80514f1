"""Every mutation by the name of its operation, so that ``apply``, ``undo`` and ``journal finish`` find it.

Modules are listed by name rather than imported: only the module that is needed is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kops.core.errors import UsageProblem

if TYPE_CHECKING:
    from kops.core.plan import Plan
    from kops.operations.protocol.mutation import Mutation

MUTATIONS = {
    "acls.change": "kops.operations.acls.change:CHANGE_ACLS",
    "brokers.move-replicas": "kops.operations.brokers.log_dirs:MOVE",
    "brokers.unregister": "kops.operations.brokers.unregister:UNREGISTERING",
    "topics.create": "kops.operations.topics.change:CHANGE_TOPICS",
    "topics.delete": "kops.operations.topics.change:CHANGE_TOPICS",
    "topics.change": "kops.operations.topics.change:CHANGE_TOPICS",
    "topics.cancel": "kops.operations.replicas.underway:CANCELLATION",
    "topics.elect-leaders": "kops.operations.replicas.elect:ELECTION",
    "topics.reassign": "kops.operations.replicas.reassign:REASSIGNMENT",
    "topics.truncate": "kops.operations.topics.truncate:TRUNCATE",
    "groups.delete": "kops.operations.offsets.delete_groups:DELETE",
    "groups.remove-members": "kops.operations.groups.remove:REMOVE",
    "share-groups.offsets": "kops.operations.share_groups.change:CHANGE",
    "offsets.move": "kops.operations.offsets.move:MOVE",
    "offsets.delete": "kops.operations.offsets.delete:DELETE",
    "records.consume": "kops.operations.records.group:CONSUME",
    "records.produce": "kops.operations.records.produce:PRODUCE",
    "tokens.create": "kops.operations.tokens:CREATE_TOKEN",
    "tokens.expiry": "kops.operations.tokens:CHANGE_EXPIRY",
    "users.change": "kops.operations.users:CHANGE_USER",
    "quotas.change": "kops.operations.quotas:CHANGE_QUOTAS",
    "schemas.register": "kops.operations.schemas.register:REGISTERING",
    "schemas.unregister": "kops.operations.schemas.register:UNREGISTERING",
    "schemas.delete": "kops.operations.schemas.delete:DELETING",
    "schemas.restore": "kops.operations.schemas.delete:RESTORING",
    "schemas.config": "kops.operations.schemas.config:CHANGE_CONFIG",
    "replay.run": "kops.operations.replay.run:REPLAY",
    "replay.restore": "kops.operations.replay.restore:RESTORE",
    "replay.redrive": "kops.operations.replay.redrive:REDRIVE",
    "replay.undo": "kops.operations.replay.run:UNDO",
    "connect.change": "kops.operations.connect.change:CHANGE_CONNECTORS",
    "connect.state": "kops.operations.connect.states:CHANGE_STATES",
    "connect.restart": "kops.operations.connect.restart:RESTART",
    "connect.offsets": "kops.operations.connect.offsets_change:CHANGE_OFFSETS",
    "connect.loggers": "kops.operations.connect.loggers:SET_LOGGERS",
    "cluster.apply": "kops.operations.protocol.composed:COMPOSED",
    "cluster.features": "kops.operations.cluster.features:CHANGE",
    "cluster.quorum": "kops.operations.cluster.quorum:CHANGE",
    "transactions.abort": "kops.operations.transactions.abort:ABORT",
    "settings.change": "kops.operations.settings.change:CHANGE_SETTINGS",
    "streams.reset": "kops.operations.streams.mutation:RESET",
    "state.replace": "kops.operations.state.change:STATE_CHANGE",
    "state.rebuild": "kops.operations.state.change:STATE_CHANGE",
    "state.into": "kops.operations.state.change:STATE_CHANGE",
    "state.repartition": "kops.operations.state.change:STATE_CHANGE",
    "state.restore": "kops.operations.state.change:STATE_CHANGE",
}


def mutation_named(name: str) -> Mutation[Any]:
    """Return the mutation of an operation.

    :raises UsageProblem: when this version of kops does not know it
    """
    if name not in MUTATIONS:
        raise UsageProblem(f"this kops cannot carry out plans of the kind {name}", hint="use the version of kops that made the plan")
    module, attribute = MUTATIONS[name].split(":")
    mutation: Mutation[Any] = getattr(importlib.import_module(module), attribute)
    return mutation


def typed(plan: Plan) -> Plan:
    """Give a plan that was read from a file or the journal typed arguments, and the items derived from them.

    A plan of an unknown operation is returned unchanged: it can still be shown.

    :raises UsageProblem: when the arguments are damaged
    """
    return mutation_named(plan.operation).typed(plan) if plan.operation in MUTATIONS else plan
