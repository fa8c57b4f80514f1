"""A broker that asks for who somebody is: for certificates on one listener, for tokens (or SCRAM) on the other."""

import base64
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kops.sandbox import brokers, parts
from kops.sandbox.ports import pick
from support.services import OwnBroker

OAUTH = "org.apache.kafka.common.security.oauthbearer"
HOURS = 4


@dataclass(frozen=True)
class Strict:
    """Such a broker.

    :param folder: with ``alice.pem`` and ``alice.key``, those of ``bob``, and ``token.jwt``
    :param port: of the listener that asks for certificates
    """

    own: OwnBroker
    folder: Path
    port: int

    def contexts(self) -> str:
        """Return the contexts ``alice`` and ``bob`` (certificates) and ``tokens``, as a configuration file has them."""
        ca = f"ca_file = {str(self.own.sandbox.ca_file)!r}\n"
        mutual = f"bootstrap_servers = ['127.0.0.1:{self.port}']\nsecurity_protocol = 'SSL'\n{ca}"
        of = {
            name: f"{mutual}certificate_file = '{self.folder / name}.pem'\nkey_file = '{self.folder / name}.key'\n"
            for name in ("alice", "bob")
        }
        command = f"oauth_token_command = 'cat {self.folder / 'token.jwt'}'\n"
        of["tokens"] = (
            f"bootstrap_servers = ['{self.own.bootstrap_servers}']\nsecurity_protocol = 'SASL_SSL'\nsasl_mechanism = 'OAUTHBEARER'\n"
            f"{ca}{command}"
        )
        return "".join(f"[contexts.{name}]\n{text}" for name, text in of.items())


def make_identities(folder: Path) -> None:
    """Make an authority, certificates that it signed, a key for tokens as the broker reads it (RFC 7517), and a token (RFC 7519)."""

    def openssl(*arguments: str, given: bytes | None = None) -> bytes:
        return subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, input=given).stdout

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=clients CA", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2")
    for name in ("alice", "bob"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "tokens.key")
    modulus = openssl("rsa", "-in", "tokens.key", "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
    key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k1", "n": _text(bytes.fromhex(modulus)), "e": "AQAB"}
    (folder / "jwks.json").write_text(json.dumps({"keys": [key]}))
    now = int(time.time())
    claims = {"sub": "operator", "iss": "tests", "iat": now - 60, "exp": now + HOURS * 3600, "scope": "kafka"}
    body = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT", "kid": "k1"}, claims))
    signature = openssl("dgst", "-sha256", "-sign", "tokens.key", given=body.encode())
    (folder / "token.jwt").write_text(f"{body}.{_text(signature)}")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.fixture(scope="module")
def strict(own_brokers, tmp_path_factory):
    """Start such a broker."""
    folder, (port,) = tmp_path_factory.mktemp("identities"), pick(1)
    make_identities(folder)
    keys = (folder / "jwks.json").as_uri()
    settings, options = brokers.server_settings, parts.java_options

    def asking(*at, **how):
        found = settings(*at, **how)
        listeners = {name: f"{found[name]},MUTUAL://127.0.0.1:{port}" for name in ("listeners", "advertised.listeners")}
        return {
            **found,
            **listeners,
            "listener.security.protocol.map": f"{found['listener.security.protocol.map']},MUTUAL:SSL",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.truststore.type": "PEM",
            "listener.name.mutual.ssl.truststore.location": str(folder / "ca.pem"),
            "sasl.enabled.mechanisms": f"{found['sasl.enabled.mechanisms']},OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "listener.name.client.oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            "listener.name.client.oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}.OAuthBearerValidatorCallbackHandler",
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "server_settings", asking)
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"
        patch.setattr(parts, "java_options", lambda *at: [allowed, *options(*at)])
        yield Strict(own_brokers(security="sasl-ssl"), folder, port)
