"""`kops state rebuild` against the changelogs that real applications wrote on a broker, partitions included."""

import uuid

import pytest

from support import twins
from support.programs import KeyBy, Program
from support.streams_cases import records

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SCHEMA = "id bigint, item string, price double"
ITEM = KeyBy(field="item")
PROGRAMS = {
    # From three partitions through a repartition topic: the order there is unknown, and none of these depends on it.
    "count-by-item": (Program("count", "long", schema=SCHEMA, key_by=ITEM), "exactly_once_v2"),
    "table": (Program("table", "json", schema=SCHEMA), "exactly_once_v2"),
    "concat": (Program("concat_or_delete", "string", value="string"), "at_least_once"),
}


@pytest.fixture(scope="module")
def applications(cluster, tmp_path_factory):
    """All of them, run to the end of their input at once, and closed."""
    prefix = f"application-{uuid.uuid4().hex[:8]}"
    made = {}
    for name, (program, guarantee) in PROGRAMS.items():
        twin = twins.make(cluster, program, f"{prefix}-{name}", tmp_path_factory.mktemp(name), guarantee)
        made[name] = twin, records(program, name)
    twins.process_each(list(made.values()))
    yield {name: twin for name, (twin, _records) in made.items()}
    cluster.delete_all(cluster.topics(prefix))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_application_wrote_passes_and_comes_back_when_lost(applications, cluster, run_kops, name):
    twin = applications[name]
    common = (twin.state_file, "-B", cluster.servers)
    difference = run_kops("state", "diff", *common, "-o", "json")
    assert (difference.code, difference.json) == (0, []), difference.out
    run_kops("state", "verify", *common).ok()
    before, committed = twin.view(), cluster.committed(twin.program.application)
    assert len({entry.partition for entry in before.values()}) > 1
    cluster.empty(twin.program.changelog)
    twins.rebuild(twin, run_kops)
    assert twin.view() == before
    assert cluster.committed(twin.program.application) == committed
