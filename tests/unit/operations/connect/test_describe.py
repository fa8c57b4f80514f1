"""Which settings are secrets, by the plugins of a configuration."""

from types import SimpleNamespace

from kops.core.errors import NotFound
from kops.operations.connect.describe import password_settings


class Plugins:
    def __init__(self):
        self.asked = []

    def plugin_settings(self, plugin):
        self.asked.append(plugin)
        if plugin == "a.Unknown":
            raise NotFound("no such plugin")
        return [{"name": "phrase", "type": "PASSWORD"}, {"name": "field", "type": "STRING"}]


def test_every_plugin_of_a_configuration_is_asked():
    connect = Plugins()
    config = {
        "connector.class": "a.Sink",
        "transforms": "seal, other",
        "transforms.seal.type": "a.Seal",
        "transforms.other.type": "a.Unknown",
        "transforms.absent.type": "a.Absent",
        "predicates": "is",
        "predicates.is.type": "a.Is",
        "value.converter": "a.Converter",
    }
    assert password_settings(SimpleNamespace(connect=connect), config) == {
        "phrase",
        "transforms.seal.phrase",
        "predicates.is.phrase",
        "value.converter.phrase",
    }
    assert sorted(connect.asked) == ["a.Converter", "a.Is", "a.Seal", "a.Sink", "a.Unknown"]
