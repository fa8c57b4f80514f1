"""Java's trust stores and key stores, as far as librdkafka can use them: PEM, and PKCS12 for our own key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kops.core.errors import ConfigError

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_ASN1_SEQUENCE = b"\x30"


def store_type(path: Path) -> str:
    """Return PEM, PKCS12 or JKS by the file's content: Java's JKS type opens PKCS12 files too, so the declared type is unreliable.

    :raises ConfigError: if it cannot be read or is another kind of file
    """
    try:
        start = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the store {path}: {error.strerror}") from None
    if start.startswith((_JKS_MAGIC, _JCEKS_MAGIC)):
        return "JKS"
    if b"-----BEGIN " in start:
        return "PEM"
    if start.startswith(_ASN1_SEQUENCE):
        return "PKCS12"
    raise ConfigError(f"{path} is not a PEM, PKCS12 or JKS store")


def truststore_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return ``ca_file``, or the certificates themselves, from a Java trust store.

    :raises ConfigError: if it is not PEM, with the commands that convert it
    """
    if properties.get("ssl.truststore.certificates"):
        return {"client.ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    if not location:
        return {}
    path = Path(location).absolute()
    kind = store_type(path)
    if kind != "PEM":
        hint = (
            f"export its authorities: keytool -list -rfc -keystore {path} | sed -n '/BEGIN/,/END/p' > ca.pem,"
            " then set ssl.truststore.type=PEM and ssl.truststore.location=ca.pem"
        )
        raise ConfigError(f"the trust store {path} is {kind}; librdkafka needs PEM", hint=hint)
    return {"ca_file": str(path)}


def keystore_settings(properties: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings for the client's certificate and key, and the secrets that open them.

    :raises ConfigError: if librdkafka cannot use the store, with the command that converts it
    """
    if properties.get("ssl.keystore.key"):
        hint = "save key and certificate chain in one PEM file, and set ssl.keystore.type=PEM and ssl.keystore.location"
        raise ConfigError("ssl.keystore.key holds the private key itself, and kops keeps keys in files only", hint=hint)
    location = properties.get("ssl.keystore.location")
    if not location:
        return {}, {}
    path = Path(location).absolute()
    kind = store_type(path)
    if kind == "JKS":
        hint = f"convert it: keytool -importkeystore -srckeystore {path} -destkeystore client.p12 -deststoretype PKCS12"
        raise ConfigError(f"the key store {path} is JKS; librdkafka needs PKCS12 or PEM", hint=hint)
    if kind == "PEM":
        return {"certificate_file": str(path), "key_file": str(path)}, {}
    password = properties.get("ssl.keystore.password") or ""
    return {"keystore_file": str(path)}, {"keystore_password": password}
