"""Changes of internal topics; before one is deleted, proof that it can be created again, with settings that are all known."""

from types import SimpleNamespace

import pytest

from kops.core.errors import AuthorizationFailed, Refused
from kops.core.models import NewTopic, Setting
from kops.operations.state.internal_topics import TopicChange, changes_json, changes_of_json, refuse_unless_recreatable

POLICY = Setting("cleanup.policy", "compact", "topic")
BEFORE = NewTopic("app-totals-changelog", 3, 1, {"cleanup.policy": "compact"})
CHANGE = TopicChange(BEFORE, BEFORE, "id")


class Topics:
    """A cluster's topics, where nothing but the settings is in the way."""

    def __init__(self, settings):
        self._settings = settings
        self.tried = []

    def existing(self, names):
        return dict.fromkeys(names)

    def rights(self, names, *, of_cluster):
        return dict.fromkeys(names)

    def settings(self, names):
        if isinstance(self._settings, Exception):
            raise self._settings
        return {name: {setting.name: setting for setting in self._settings} for name in names}

    def create(self, topics, *, validate_only):
        assert validate_only
        self.tried += topics
        return {topic.name: None for topic in topics}


def refused(settings):
    topics = Topics(settings)
    with pytest.raises((Refused, AuthorizationFailed)) as error:
        refuse_unless_recreatable(SimpleNamespace(kafka=SimpleNamespace(topics=topics)), [CHANGE])
    assert not topics.tried
    return error.value


def test_a_topic_with_a_setting_that_cannot_be_read_is_not_deleted():
    error = refused([POLICY, Setting("vendor.tier", None, "topic", sensitive=True)])
    assert "app-totals-changelog would be deleted, and could not be created again" in error.message
    assert "vendor.tier" in error.message
    assert "nothing was changed" in error.hint


def test_a_topic_whose_settings_may_not_be_read_is_not_deleted():
    assert isinstance(refused(AuthorizationFailed("lacks DESCRIBE_CONFIGS on topic app-totals-changelog")), AuthorizationFailed)


def test_settings_of_the_brokers_need_not_be_known():
    topics = Topics([POLICY, Setting("broker.secret", None, "broker", sensitive=True)])
    refuse_unless_recreatable(SimpleNamespace(kafka=SimpleNamespace(topics=topics)), [CHANGE])
    assert [topic.partitions for topic in topics.tried] == [3, 3]


def test_changes_of_topics_go_there_and_back():
    old, new = NewTopic("t", 4, 1, {"x": "y"}), NewTopic("t", 12, 1, {"x": "y"})
    change = TopicChange(old, new, "id")
    assert changes_of_json(changes_json([change])) == [change]
    assert (change.action, TopicChange(None, new).action, TopicChange(old, None).action) == ("replace", "create", "delete")
    assert change.backwards("other") == TopicChange(new, old, "other")
