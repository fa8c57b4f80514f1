"""Which quota applies to a client is what Kafka's ``ClientQuotaManager`` decides."""

import pytest

from kops.core.cluster.models import Quota
from kops.core.quotas import applied
from support.java_judge import COUNTS, portions, random_of

KEY = "producer_byte_rate"
NONE = float(2**63)
"""The limit of a client without a quota: ``Long.MAX_VALUE``."""
USERS = ("alice", "bob", "CN=x y", "")
CLIENTS = ("app", "other", "ä/%", "")


def case_of(random):
    places = [(user, client) for user in (*USERS[:3], "", None) for client in (*CLIENTS[:3], "", None) if (user, client) != (None, None)]
    kind = random.choice((None, None, lambda at: at[0] is None, lambda at: at[1] is None, lambda at: None not in at))
    possible = [at for at in places if kind is None or kind(at)]
    chosen = random.sample(possible, random.randint(0, min(6, len(possible))))
    quotas = [[*at, 1000 + number] for number, at in enumerate(chosen)]
    return {"quotas": quotas, "user": random.choice(USERS), "client_id": random.choice(CLIENTS)}


def shared_by(tags):
    if tags["user"] and tags["client-id"]:
        return f"clients of user {tags['user']} with client id {tags['client-id']}"
    return f"all clients of user {tags['user']}" if tags["user"] else f"clients of any user with client id {tags['client-id']}"


@pytest.mark.parametrize("count", COUNTS)
def test_the_quota_that_applies(java_judge, count):
    limited = 0
    for cases in portions(case_of(each) for each in random_of("quotas", count)):
        for case, answer in zip(cases, java_judge.ask("Quotas", cases), strict=True):
            named = [({"user": user, "client-id": client}, value) for user, client, value in case["quotas"]]
            quotas = [Quota({kind: name for kind, name in entity.items() if name is not None}, {KEY: value}) for entity, value in named]
            found = applied(quotas, KEY, case["user"], case["client_id"])
            assert "ok" in answer, (case, answer)
            assert (NONE if found.value is None else found.value) == answer["ok"]["limit"], (case, found, answer)
            if found.value is not None and case["user"] != "CN=x y":  # which tags have in Kafka's own quoting
                limited += 1
                assert found.shared_by == shared_by(answer["ok"]["tags"]), (case, found, answer)
    assert limited > count / 5
