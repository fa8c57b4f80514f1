"""Connect plugins by Maven coordinate: what fetching one needs."""

import pytest

from kops.core import extras
from kops.core.errors import MissingRequirement
from kops.gateways.connect.plugins import plugin_folder, plugins_directory


def test_without_the_extra_that_fetching_needs_the_hint_adds_it(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    monkeypatch.setenv("PATH", str(tmp_path))  # no Java either: it is not what is asked for first
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    with pytest.raises(MissingRequirement, match="needs the extra 'state' of kops") as refused:
        plugin_folder(tmp_path, "org.example:plugin:1.0")
    assert "pyspark" in refused.value.hint
    assert list(plugins_directory(tmp_path).iterdir()) == []


def test_a_cached_plugin_needs_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    cached = plugins_directory(tmp_path) / "plugin-1.0"
    cached.mkdir(parents=True)
    assert plugin_folder(tmp_path, "org.example:plugin:1.0") == cached
