"""``examples/reprocess``: the code changed; the new application's state is built beside the old one, which stays until the switch."""

import json
import struct
from dataclasses import replace

import pytest

from support.broken_copies import assert_same_stores
from support.examples import process, wait_until_processed
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PAGES = ("home", "shop", "help")


def visits(first, last):
    """Every third visit is that of a bot; of one page only bots know."""
    made = []
    for at in range(first, last):
        page = "robots" if at % 9 == 0 else PAGES[at % 4 % 3]
        visit = json.dumps({"visitor": f"v{at}", "bot": at % 3 == 0}).encode()
        made.append(Record(page.encode(), visit, 1_700_000_000_000 + at))
    return {"visits": made}


def counts(copy):
    return {key.decode(): struct.unpack(">q", entry.value)[0] for key, entry in copy.view("visits").items()}


def test_the_new_code_takes_over_where_the_old_one_stops(copies):
    options = {"inputs": ["visits"], "outputs": ["page-visits"], "settings": {"group.protocol": "streams"}}
    twin, old = copies("reprocess", "VisitsApplication", 2, state_file_name="state-v1.yaml", **options)
    twin, new = (
        replace(copy, main_class="PeopleOnlyApplication", state_file_name="state-v2.yaml", folder=copy.folder / "v2")
        for copy in (twin, old)
    )
    for copy in (twin, new):
        copy.folder.mkdir()
    process([twin], visits(0, 30), visits(30, 50))
    old.start()
    old.produce(visits(0, 30))
    wait_until_processed(old)
    before = old.output()
    beside = ("state", "rebuild", new.state_file, "--into", new.application, "--offsets-of", old.application, "--yes")
    new.kops(*beside).ok()
    assert counts(old)["robots"] == 4
    assert "robots" not in counts(new)
    difference = new.kops("state", "diff", old.state_file, "--against", new.application, "-o", "json")
    rows = {row["key"]: (row["expected"], row["actual"]) for row in difference.json}
    assert (difference.code, rows["robots"]) == (1, (4, None))
    assert rows["shop"] == (counts(old)["shop"], counts(new)["shop"])
    old.produce(visits(30, 40))  # the old one still works
    wait_until_processed(old)
    old.host.stop(old.host_name)
    new.kops("offsets", "copy", old.application, new.application, "--yes").ok()
    assert new.committed() == old.committed()
    new.kops("state", "rebuild", new.state_file, "--yes").ok()
    new.kops("state", "verify", new.state_file).ok()
    old.kops("state", "verify", old.state_file).ok()
    assert sum(map(len, new.output().values())) == 40  # so far only the old one has written, each visit once
    process([new], visits(40, 50))
    assert_same_stores(new, twin)
    assert new.committed() == twin.committed()
    after = new.output()
    written = [value for key, values in after.items() for value in values[len(before.get(key, [])) :]]
    people = [at for at in range(40, 50) if at % 3]
    assert len(written) == 10 + len(people)
    assert sum(map(len, after.values())) == 40 + len(people)
