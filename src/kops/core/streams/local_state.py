"""What only the application or its operator can do: delete local state when changelogs or offsets are changed, and catch up."""

from __future__ import annotations

from collections.abc import Sequence

CATCH_UP = "start the application until it has caught up, and stop it again"
"""The advice where records of its repartition topics wait, which kops cannot process."""


def delete_local_state(application: str, hosts: Sequence[str] = (), why: str = "") -> str:
    """Describe how to delete local state, and what happens otherwise.

    A restore continues from the changelog offset that the store has saved: up to 4.2 in the file ``.checkpoint``, from 4.3 on in RocksDB
    (KIP-1035).

    :param hosts: the machines whose instances are known
    :param why: which changelogs make it necessary, as a clause
    """
    because, where = f"{why}: " if why else "", f" ({', '.join(hosts)})" if hosts else ""
    return (
        f"{because}delete the local state of {application} on every instance{where} before it starts: STATE_DIR/{application}"
        " (state.dir; /tmp/kafka-streams unless set), of standby replicas and in PersistentVolumeClaims too, or call"
        " KafkaStreams#cleanUp(). Otherwise a store whose checkpoint lies below the new end of its changelog keeps stale keys without an"
        " error; deleting .checkpoint alone is not enough, since Kafka Streams 4.3 keeps offsets in RocksDB"
    )
