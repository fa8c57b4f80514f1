from pathlib import Path

from kops.config.paths import directories


def test_defaults():
    found = directories({"HOME": "/home/me"})
    assert found.config_file == Path("/home/me/.config/kops/config.toml")
    assert (found.state, found.cache, found.data) == (
        Path("/home/me/.local/state/kops"),
        Path("/home/me/.cache/kops"),
        Path("/home/me/.local/share/kops"),
    )


def test_xdg_and_overrides():
    environ = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k", "XDG_DATA_HOME": "relative/d"}
    found = directories(environ)
    assert (found.config, found.state, found.cache) == (Path("/c/kops"), Path("/s/kops"), Path("/k/kops"))
    assert found.data == Path("/h/.local/share/kops")  # relative ones are ignored, as the specification asks
    over = directories(environ | {"KOPS_CONFIG": "/etc/team.toml", "KOPS_CACHE_DIR": "/big/cache"})
    assert (over.config_file, over.config, over.cache, over.state) == (
        Path("/etc/team.toml"),
        Path("/etc"),
        Path("/big/cache"),
        Path("/s/kops"),
    )


def test_without_home():
    assert directories({}).config == Path.home() / ".config" / "kops"
