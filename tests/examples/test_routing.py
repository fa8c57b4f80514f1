"""``examples/routing``: orders sent to topics by what is in them, repaired on the way, undone and sent again."""

import json

import pytest

from support.examples import EXAMPLES, with_names

pytestmark = [pytest.mark.broker, pytest.mark.spark]

FORMAT = "json:id long, region string, amount string"
REGION = "lower(trim(value.region))"
AMOUNT = "cast(replace(value.amount, ',', '.') as decimal(9,2))"
BODY = f"to_json(named_struct('id', value.id, 'region', {REGION}, 'amount', {AMOUNT}))"


def expected(prefix):
    """Return what belongs into each topic, from the file of the example: key and value."""
    found = {f"{prefix}orders-{name}": set() for name in ("eu", "us", "unrouted")}
    for line in (EXAMPLES / "routing" / "orders.txt").read_text().splitlines():
        key, _, text = line.partition("|")
        order = json.loads(text)
        region = order.get("region", "").strip().lower()
        body = {"id": order["id"], **({"region": region} if "region" in order else {}), "amount": order["amount"].replace(",", ".")}
        found[f"{prefix}orders-{region or 'unrouted'}"].add((key, order["id"], json.dumps(body)))
    return found


def seen(cluster, topic):
    rows = [(record.key.decode(), json.loads(record.value, parse_float=str)) for record in cluster.read(topic)]
    return {(key, body["id"], json.dumps(body)) for key, body in rows}


def test_routed_by_content(run_kops, cluster, unique, tmp_path):
    prefix = f"{unique()}-"
    topics = with_names("routing", "topics.yaml", tmp_path, {"name: orders": f"name: {prefix}orders"})
    route = f"coalesce('{prefix}orders-' || nullif({REGION}, ''), '{prefix}orders-unrouted')"
    targets = expected(prefix)

    def kops(*arguments):
        return run_kops(*arguments, "-B", cluster.servers)

    def replay(*more):
        return kops("replay", "run", f"{prefix}orders", "--value", FORMAT, "--to-expression", route, "--set", f"value={BODY}", *more)

    try:
        kops("topics", "create", f"{prefix}orders", "--partitions", "3", "--yes").ok()
        produced = EXAMPLES / "routing" / "orders.txt"
        kops("records", "produce", f"{prefix}orders", "--file", produced, "--key-separator", "|").ok()
        missing = replay("--yes")
        assert (missing.code, [name for name in targets if name not in missing.err], "nothing was sent" in missing.err) == (5, [], True)
        kops("topics", "apply", topics, "--yes").ok()
        for _time in range(2):
            done = replay("--yes", "-o", "json").ok().json
            assert {topic: seen(cluster, topic) for topic in targets} == targets
            kops("undo", done["journal_id"], "--confirm", f"{len(targets)} topics")
            assert not any(cluster.read(topic) for topic in targets)
    finally:
        cluster.delete_all(cluster.topics(prefix))
