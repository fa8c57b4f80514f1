"""What keeps the dead letters of a share group from being written: each reason alone, and none where all is well."""

import pytest

from kops.core.groups.dead_letters import COPY, CREATE, ENABLE, PREFIX, TOPIC, dead_letter_warnings

GOOD = {TOPIC: "dlq.orders", COPY: "true"}
BROKER = {PREFIX: "dlq.", CREATE: "false"}


@pytest.mark.parametrize(
    ("settings", "of_topic", "of_broker", "said"),
    [
        (GOOD, {ENABLE: "true"}, BROKER, []),
        ({**GOOD, TOPIC: ""}, None, BROKER, []),
        ({**GOOD, TOPIC: "orders-dead"}, {ENABLE: "true"}, BROKER, ["begin with dlq."]),
        ({**GOOD, TOPIC: "orders-dead"}, {ENABLE: "true"}, {PREFIX: ""}, []),
        (GOOD, {ENABLE: "false"}, BROKER, [f"{ENABLE}=false"]),
        (GOOD, None, BROKER, ["does not exist"]),
        (GOOD, None, {PREFIX: "dlq.", CREATE: "true"}, []),
        (GOOD, {}, {}, []),
        ({**GOOD, COPY: "false"}, {ENABLE: "true"}, BROKER, ["neither key nor value"]),
    ],
)
def test_each_reason(settings, of_topic, of_broker, said):
    found = list(dead_letter_warnings(settings, of_topic, of_broker))
    assert len(found) == len(said)
    assert all(part in text for part, text in zip(said, found, strict=True))
