"""Where kops keeps its files: the XDG base directories, and the two overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Directories:
    """The directories of kops; they need not exist yet.

    :param config: contexts; ``$XDG_CONFIG_HOME/kops``, or the directory of ``$KOPS_CONFIG``
    :param state: the journal; ``$XDG_STATE_HOME/kops``
    :param cache: jars, safe to delete; ``$KOPS_CACHE_DIR`` or ``$XDG_CACHE_HOME/kops``
    :param data: sandboxes and archives; ``$XDG_DATA_HOME/kops``
    :param config_name: name of the configuration file inside ``config``
    """

    config: Path
    state: Path
    cache: Path
    data: Path
    config_name: str = "config.toml"

    @property
    def locks(self) -> Path:
        """The directory of the locks between the kops processes of one user."""
        return self.state / "locks"

    @property
    def config_file(self) -> Path:
        return self.config / self.config_name

    @property
    def secrets(self) -> Path:
        """The directory of the secret files that kops itself wrote."""
        return self.config / "secrets"


def directories(environ: Mapping[str, str]) -> Directories:
    """Determine the directories.

    A relative ``XDG_*`` path is ignored, as the XDG base directory specification requires.

    :param environ: usually ``os.environ``
    """
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()

    def base(variable: str, default: str) -> Path:
        given = Path(environ.get(variable) or "")
        return (given if given.is_absolute() else home / default) / "kops"

    config, name = base("XDG_CONFIG_HOME", ".config"), "config.toml"
    if environ.get("KOPS_CONFIG"):
        file = Path(environ["KOPS_CONFIG"]).expanduser().absolute()
        config, name = file.parent, file.name
    cache = base("XDG_CACHE_HOME", ".cache")
    if environ.get("KOPS_CACHE_DIR"):
        cache = Path(environ["KOPS_CACHE_DIR"]).expanduser().absolute()
    return Directories(
        config=config,
        state=base("XDG_STATE_HOME", ".local/state"),
        cache=cache,
        data=base("XDG_DATA_HOME", ".local/share"),
        config_name=name,
    )
