"""Certificates and keys on disk, checked before a client reads them: for a wrong path OpenSSL reports only error numbers."""

from __future__ import annotations

from pathlib import Path

from kops.core.errors import ConfigError


def readable(path: str, setting: str) -> str:
    """Return the path, if it can be read.

    :param setting: for the error message
    :raises ConfigError: naming the path and the setting
    """
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({setting}): {error.strerror}") from None
    return path


def read_pem(path: str, setting: str) -> str:
    """Return the text of a PEM file.

    :raises ConfigError: if it cannot be read, or is not PEM; the error does not repeat its content
    """
    try:
        text = Path(readable(path, setting)).read_text(encoding="latin-1")  # comments around the blocks can be in any encoding
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({setting}): {error.strerror}") from None
    if "-----BEGIN " not in text:
        raise ConfigError(f"{path} ({setting}) is not PEM", hint="PEM files hold lines such as -----BEGIN CERTIFICATE-----")
    return text
