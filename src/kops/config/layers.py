"""Layers of settings: the values from each place, with their source.

A layer maps a setting's name (``spark.conf`` and ``client`` followed by ``.KEY``) to a value and its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from kops.config import secrets
from kops.config.connection import Secret
from kops.config.schema import SECRET_FORMS, SETTINGS, Kind, Setting, convert, convert_text, nearest, split_property
from kops.core.errors import ConfigError


@dataclass(frozen=True)
class SourcedValue:
    value: Any
    source: str


@dataclass(frozen=True)
class SecretReference:
    """A reference to a secret in the configuration.

    :param form: file, command or env
    """

    form: str
    reference: str

    def open(self, environ: Mapping[str, str]) -> Secret:
        """Return the secret, which is not read yet."""
        if self.form == "file":
            return secrets.from_file(Path(self.reference))
        return secrets.from_command(self.reference) if self.form == "command" else secrets.from_environment(self.reference, environ)


Layer: TypeAlias = dict[str, SourcedValue]

LIBRDKAFKA_NAMES: Mapping[str, str] = {
    "bootstrap.servers": "bootstrap_servers",
    "metadata.broker.list": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "username",
    "ssl.ca.location": "ca_file",
    "ssl.certificate.location": "certificate_file",
    "ssl.key.location": "key_file",
    "ssl.keystore.location": "keystore_file",
    "sasl.oauthbearer.token.endpoint.url": "oauth_token_url",
    "sasl.oauthbearer.client.id": "oauth_client_id",
    "sasl.oauthbearer.scope": "oauth_scope",
}
"""librdkafka properties that have a setting in kops: if given with ``-X`` they apply to Java and Spark too."""

HOSTNAME_ALGORITHM = "ssl.endpoint.identification.algorithm"

_SECRET_SETTINGS = {
    "sasl.password": "password",
    "ssl.key.password": "key_password",
    "ssl.key.pem": "key_file",
    "ssl.keystore.password": "keystore_password",
    "sasl.oauthbearer.client.secret": "oauth_client_secret",
    "sasl.jaas.config": "password",
}


def from_table(table: Mapping[str, Any], prefix: str, source: str, base: Path) -> Layer:
    """Parse the table of a context.

    :param prefix: file and table for error messages, such as ``/home/me/.config/kops/config.toml: contexts.prod``
    :raises ConfigError: for an unknown key, a value of the wrong kind, or a secret in plain text
    """
    layer: Layer = {}
    for key, value in table.items():
        where = f"{prefix}.{key}"
        if key == "spark" and isinstance(value, dict):
            for inner, inner_value in value.items():
                _read_key(layer, f"spark.{inner}", inner_value, where=f"{where}.{inner}", source=source, base=base)
        else:
            _read_key(layer, key, value, where=where, source=source, base=base)
    return layer


def from_environment(environ: Mapping[str, str]) -> Layer:
    """Read the ``KOPS_*`` variables.

    :raises ConfigError: for a value of the wrong kind
    """
    layer: Layer = {}
    for setting in SETTINGS.values():
        source = f"environment {setting.variable}"
        if setting.kind is Kind.SECRET:
            found = _secret_from_environment(setting, environ)
            if found:
                layer[setting.name] = found
        elif environ.get(setting.variable, "").strip():
            value = convert_text(setting, environ[setting.variable], source)
            _put(layer, setting, value, source, source)
    return layer


def from_properties(properties: Iterable[str]) -> Layer:
    """Parse ``-X name=value`` with librdkafka's names; a property that kops has a setting for becomes that setting.

    :raises ConfigError: for a secret, or if there is no ``=``
    """
    layer: Layer = {}
    for text in properties:
        key, value = split_property(text, "-X")
        source = f"flag -X {key}"
        refuse_secret(key, "-X")
        name = LIBRDKAFKA_NAMES.get(key)
        if name:
            layer[name] = SourcedValue(convert_text(SETTINGS[name], value, source), source)
        elif key == HOSTNAME_ALGORITHM:
            layer["verify_hostname"] = SourcedValue(value.lower() not in {"none", ""}, source)
        else:
            layer[f"client.{key}"] = SourcedValue(value, source)
    return layer


def refuse_secret(key: str, where: str) -> None:
    """Refuse a client property that holds a secret.

    :raises ConfigError: naming the property and what to use instead; never the value
    """
    from kops.core.secret_shapes import is_secret_name  # compiling its patterns takes milliseconds

    if is_secret_name(key):
        name = _SECRET_SETTINGS.get(key, "password")
        hint = f"use {name}_file, {name}_command or {name}_env in the context, or KOPS_{name.upper()}: ps shows command lines to everybody"
        if name == "key_file":
            hint = "use key_file in the context, or KOPS_KEY_FILE"
        raise ConfigError(f"{where}: {key} is a secret and is not accepted here", hint=hint)


def merge(layers: Iterable[Layer]) -> Layer:
    """Merge layers, the strongest first.

    ``protected`` and ``read_only`` are true if any layer sets them to true: a stronger layer cannot switch them off.
    """
    merged: Layer = {}
    for layer in layers:
        for key, sourced in layer.items():
            raised = key in {"protected", "read_only"} and sourced.value and not (key in merged and merged[key].value)
            if key not in merged or raised:
                merged[key] = sourced
    return merged


def _read_key(layer: Layer, key: str, value: Any, *, where: str, source: str, base: Path) -> None:
    name, form = _split_form(key)
    if name is None:
        raise ConfigError(f"{where}: there is no such setting", hint=nearest(key, _known_keys()))
    setting = SETTINGS[name]
    if setting.kind is not Kind.SECRET:
        _put(layer, setting, convert(setting, value, where, base), source, where)
        return
    if not form:
        forms = ", ".join(f"{name}_{one}" for one in SECRET_FORMS)
        raise ConfigError(f"{where}: secrets are not written into the configuration", hint=f"use one of {forms}")
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where} must be a string")
    if name in layer:
        raise ConfigError(f"{where}: {name} is given twice", hint=f"keep one of {', '.join(f'{name}_{one}' for one in SECRET_FORMS)}")
    layer[name] = SourcedValue(SecretReference(form, str(base / Path(value).expanduser()) if form == "file" else value), source)


def _put(layer: Layer, setting: Setting, value: Any, source: str, where: str) -> None:
    if setting.kind is not Kind.TABLE:
        layer[setting.name] = SourcedValue(value, source)
        return
    for key, one in value.items():
        if setting.name == "client":
            refuse_secret(key, where)
            own = "verify_hostname" if key == HOSTNAME_ALGORITHM else LIBRDKAFKA_NAMES.get(key)
            if own:
                raise ConfigError(f"{where}.{key}: kops has its own setting for this", hint=f"use {own}")
        layer[f"{setting.name}.{key}"] = SourcedValue(one, source)


def _secret_from_environment(setting: Setting, environ: Mapping[str, str]) -> SourcedValue | None:
    if environ.get(setting.variable):
        return SourcedValue(secrets.from_environment(setting.variable, environ), f"environment {setting.variable}")
    for form in ("file", "command"):
        variable = f"{setting.variable}_{form.upper()}"
        if environ.get(variable):
            text = environ[variable]
            reference = str(Path(text).expanduser().absolute()) if form == "file" else text
            return SourcedValue(SecretReference(form, reference), f"environment {variable}")
    return None


def _split_form(key: str) -> tuple[str | None, str]:
    if key in SETTINGS:
        return key, ""
    name, _, form = key.rpartition("_")
    if form in SECRET_FORMS and name in SETTINGS and SETTINGS[name].kind is Kind.SECRET:
        return name, form
    return None, ""


def _known_keys() -> list[str]:
    plain = [setting.name for setting in SETTINGS.values() if setting.kind is not Kind.SECRET]
    return plain + [f"{setting.name}_{form}" for setting in SETTINGS.values() if setting.kind is Kind.SECRET for form in SECRET_FORMS]
