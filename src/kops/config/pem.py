"""Certificates and keys on disk, looked at before a client does: its own words for a wrong path are OpenSSL error numbers."""

from __future__ import annotations

from pathlib import Path

from kops.core.errors import ConfigError


def readable(path: str, setting: str) -> str:
    """Return a path that can be read.

    :param setting: for the error
    :raises ConfigError: naming the path and the setting
    """
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({setting}): {error.strerror}") from None
    return path


def read_pem(path: str, setting: str) -> str:
    """Return the text of a PEM file.

    :raises ConfigError: when it cannot be read, or is something else; its content is not repeated
    """
    try:
        text = Path(readable(path, setting)).read_text(encoding="latin-1")  # comments around the blocks may be of any encoding
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({setting}): {error.strerror}") from None
    if "-----BEGIN " not in text:
        raise ConfigError(f"{path} ({setting}) is not PEM", hint="PEM files hold lines such as -----BEGIN CERTIFICATE-----")
    return text
