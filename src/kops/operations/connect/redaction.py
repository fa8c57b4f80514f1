"""Configurations in plans and in the journal: secrets are removed, and looked up again when a plan is applied.

A plan contains a digest in place of a secret, with a key that only this user has. The secret itself is in the file that the plan was
made from, or in the connector's current configuration; a value from there is used only if its digest matches.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kops.core.connect.models import own_config
from kops.core.connect.secrets import digest, is_masked, masked
from kops.operations.services import Services

_KEY_BYTES = 32


@dataclass(frozen=True)
class RedactedConfig:
    """A configuration without its secrets.

    :param shown: all settings, secrets hidden
    :param digests: of the settings that are hidden fully or partly
    """

    shown: Mapping[str, str]
    digests: Mapping[str, str]

    def opened(self, sources: Sequence[Mapping[str, str]], key: bytes) -> tuple[dict[str, str], list[str]]:
        """Return the configuration with its secrets, and the settings whose secret is in none of the sources."""
        config, missing = dict(self.shown), []
        for name, wanted in self.digests.items():
            found = next((source[name] for source in sources if name in source and digest(source[name], key) == wanted), None)
            if found is None:
                missing.append(name)
            else:
                config[name] = found
        return config, missing


def redact(config: Mapping[str, str], passwords: Collection[str], key: bytes) -> RedactedConfig:
    """Remove the secrets from a configuration.

    :param passwords: settings that the plugin declares as secrets
    """
    own = own_config(config)
    return RedactedConfig(masked(own, passwords), {name: digest(own[name], key) for name in sorted(own) if is_masked(name, own, passwords)})


def config_digest(config: Mapping[str, str] | None, key: bytes) -> str | None:
    return None if config is None else digest(own_config(config), key)


def digest_key(services: Services) -> bytes:
    """Return this user's key for digests, created atomically on first use."""
    file: Path = services.directories.state / "connect-digests.key"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if file.exists() and len(file.read_bytes()) != _KEY_BYTES:
        file.unlink()  # truncated when it was written: digests with it could be guessed
    if not file.exists():
        whole = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(secrets.token_bytes(_KEY_BYTES))
            made.flush()
            os.fsync(made.fileno())
        try:
            with suppress(FileExistsError):  # another kops was faster: use its key
                os.link(whole, file)
        finally:
            whole.unlink()
    return file.read_bytes()
