"""Connect plugins by Maven coordinate: what fetching one needs."""

from kops.core import extras
from kops.gateways.connect.plugins import plugin_folder, plugins_directory


def test_a_cached_plugin_needs_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    cached = plugins_directory(tmp_path) / "plugin-1.0"
    cached.mkdir(parents=True)
    assert plugin_folder(tmp_path, "org.example:plugin:1.0") == cached
