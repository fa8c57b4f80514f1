"""``examples/prices/postgresql``: rows go from PostgreSQL through Kafka and back as totals; these are lost on the way, and come back.

PostgreSQL itself computes the expected values, from its own rows.
"""

import shutil

import pytest

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

CHANGES = """
    insert into prices values (5, 'mouse', 30), (6, 'screen', 300), (7, 'screen', 310.5);
    update prices set price = 1800 where id = 1;
    update prices set item = 'mouse', price = 20 where id = 7;
    delete from prices where id = 4;
"""


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once_v2", marks=pytest.mark.long)])
def test_totals_come_back_to_the_database(shop, guarantee):
    shop.state_file.write_text(shop.state_file.read_text().replace("at_least_once", guarantee))
    shop.apply(shop.source, shop.sink)
    with shop.running(guarantee):
        shop.wait_for_totals()
        assert dict(shop.held()) == {"laptop": "6000", "mouse": "25.5"}
        shop.database.sql(CHANGES)
        shop.wait_for_totals()
        assert dict(shop.held()) == {"laptop": "5800", "mouse": "50", "screen": "300"}
    assert (4,) in {row[:1] for row in shop.rows()}
    shop.kops("state", "verify", shop.state_file).ok()

    shop.database.sql("delete from totals; insert into prices values (8, 'laptop', 2000)")
    shop.cluster.empty(shop.changelog)
    shutil.rmtree(shop.state)
    assert shop.kops("state", "verify", shop.state_file).code == 1
    shop.kops("state", "rebuild", shop.state_file, "--yes").ok()
    shop.kops("state", "verify", shop.state_file).ok()
    shop.kops("connect", "offsets", "alter", shop.sink, f"{shop.totals}=start", "--yes").ok()
    with shop.running(guarantee):
        shop.wait_for_totals()
    assert dict(shop.held()) == {"laptop": "7800", "mouse": "50", "screen": "300"}
    assert shop.kops("connect", "status", shop.source, shop.sink).code == 0
