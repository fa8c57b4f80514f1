"""What is still to be done before an application is started."""

from kops.operations.state.completeness import UncoveredChangelog, before_starting, still_open

OTHER, LOST = UncoveredChangelog("app-other-changelog", 3), UncoveredChangelog("app-lost-changelog", 2, (0, 1))


def test_an_application_can_be_started_only_where_all_its_changelogs_were_looked_at():
    assert before_starting("app", still_open([], [], [])) == ("app can be started: its stores follow their changelogs",)
    (first, unseen) = before_starting("app", still_open([], [OTHER], []))
    assert first == "before app is started:"
    assert unseen == "- see that these changelogs are right, which were not checked: app-other-changelog"


def test_changelogs_that_lost_records_are_named_as_such():
    (emptied, unseen) = still_open([], [LOST, OTHER], [])
    assert emptied == "these changelogs lost records, and nothing was done about them: app-lost-changelog (empty)"
    assert unseen.endswith("not checked: app-other-changelog")


def test_many_changelogs_are_not_all_named():
    (unseen,) = still_open([], [UncoveredChangelog(f"app-{number}-changelog", 1) for number in range(20)], [])
    assert unseen.endswith("app-7-changelog and 12 more")


def test_partitions_that_were_emptied_are_counted():
    assert UncoveredChangelog("t", 3, (0,)).text == "t (partition 0 was emptied)"
    assert UncoveredChangelog("t", 3, (0, 2)).text == "t (partitions 0, 2 were emptied)"
