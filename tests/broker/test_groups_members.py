"""Members removed from groups of each protocol, static and dynamic; Apache's own tool is the judge of who is left."""

import json
import re
from contextlib import ExitStack

import pytest

from support.apache_tools import CONFIGS, GROUPS
from support.consumer_groups import member
from support.json_keys import as_pinned
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker


def members(apache, group):
    """Return the client ids that Apache's tool lists."""
    printed = apache.run("--describe", "--members", "--group", group, GROUPS)
    return sorted(re.findall(rf"^{re.escape(group)}\s.*\s/\S+\s+(\S+)", printed, re.MULTILINE))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_removed_and_come_back_only_if_they_run(kops, broker, topic, group, apache, protocol):
    name = topic("t", partitions=2)
    stuck = {"session.timeout.ms": 45_000} if protocol == "classic" else {}
    with ExitStack() as there:
        there.enter_context(member(broker.bootstrap_servers, group, name, client_id="alive", group_protocol=protocol))
        settings = {"client_id": "stuck", "group_instance_id": "s-1", "group_protocol": protocol, **stuck}
        there.enter_context(member(broker.bootstrap_servers, group, name, **settings))
        wait_for("both members", lambda: members(apache, group) == ["alive", "stuck"])
        plan = kops("groups", "remove-members", group, "--instance-id", "s-*", "--dry-run", "-o", "json").ok().json
        (item,) = plan["items"]
        assert (item["action"], item["before"]["client_id"], item["before"]["group_instance_id"]) == ("remove", "stuck", "s-1")
        assert kops("groups", "remove-members", group, "--client-id", "nobody-*", "--dry-run").code == 1
        done = kops("groups", "remove-members", group, "--instance-id", "s-1", "--confirm", group, "-o", "json").ok().json
        assert [(one["target"], one["status"]) for one in done["items"]] == [(item["target"], "done")]
        found = kops("groups", "describe", group, "-o", "json").ok().json[0]["members"]
        assert item["target"] not in {one["member_id"] for one in found}
        late = kops("groups", "remove-members", group, "--member-id", item["target"], "--confirm", group)
        assert late.code == 1  # another operator was faster
    assert members(apache, group) == []


def test_a_saved_plan_is_refused_once_its_member_has_left(kops, broker, topic, group, tmp_path):
    name, plan = topic("t", partitions=1), tmp_path / "plan.json"
    with member(broker.bootstrap_servers, group, name):
        kops("groups", "remove-members", group, "--all", "--plan-out", plan).ok()
        assert json.loads(plan.read_text())["warnings"][0] == "this cannot be undone"
    assert kops("apply", plan, "--confirm", group).code == 5
    assert kops("groups", "remove-members", group, "--all", "-o", "json").ok().json["items"] == []
    assert kops("groups", "remove-members", group, "--client-id", "x").code == 1


@pytest.mark.parametrize("choice", [(), ("--all", "--client-id", "x")])
def test_a_choice_of_members_is_needed(kops, choice):
    assert kops("groups", "remove-members", "g", *choice).code == 2


def test_settings_of_groups_are_changed_and_restored(kops, apache, group):
    change = ("groups", "alter", group, "--config", "share.auto.offset.reset=earliest")
    assert kops("groups", "alter", group, "--config", "share.auto.offset.rest=earliest").code == 2
    assert kops("groups", "alter", group, "--config", "share.auto.offset.reset=sideways").code == 2
    done = kops(*change, "--yes", "-o", "json").ok().json
    own = ("--describe", "--entity-type", "groups", "--entity-name", group, CONFIGS)
    assert "share.auto.offset.reset=earliest" in apache.run(*own)
    (row,) = as_pinned("kops groups config", kops("groups", "config", group, "-o", "json").ok())
    assert row == {"group": group, "name": "share.auto.offset.reset", "value": "earliest", "source": "group"}
    kops("undo", done["journal_id"], "--yes").ok()
    assert "share.auto.offset.reset=earliest" not in apache.run(*own)
