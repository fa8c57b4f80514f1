"""A broker that asks for who somebody is: for certificates on one listener, for PLAIN, SCRAM or tokens on the other."""

import base64
import json
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from kops.sandbox import brokers, parts
from kops.sandbox.ports import pick
from support.services import OwnBroker

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
HOURS = 4
SECRET = "of-the-tests"
WAYS = {
    "plain": "SASL PLAIN",
    "admin": "SCRAM",
    "alice": "a certificate in PEM files",
    "pkcs12": "a certificate in a PKCS12 file",
    "tokens": "a token that a command prints",
    "endpoint": "a token of an endpoint",
}
"""The ways to log in, by the name of their context."""


@dataclass(frozen=True)
class Strict:
    """Such a broker.

    :param folder: with ``alice.pem``, ``alice.key`` and both as ``alice.p12``, those of ``bob``, and ``token.jwt``
    :param port: of the listener that asks for certificates
    :param tokens: the address of the token endpoint
    """

    own: OwnBroker
    folder: Path
    port: int
    tokens: str

    def contexts(self) -> str:
        """Return a context for each of ``WAYS``, and ``bob`` (a certificate too), as a configuration file has them."""
        ca = f"ca_file = {str(self.own.sandbox.ca_file)!r}\n"
        mutual = f"bootstrap_servers = ['127.0.0.1:{self.port}']\nsecurity_protocol = 'SSL'\n{ca}"
        of = {
            name: f"{mutual}certificate_file = '{self.folder / name}.pem'\nkey_file = '{self.folder / name}.key'\n"
            for name in ("alice", "bob")
        }
        of["pkcs12"] = f"{mutual}keystore_file = '{self.folder / 'alice.p12'}'\nkeystore_password_file = '{self.folder / 'secret'}'\n"
        login = f"bootstrap_servers = ['{self.own.bootstrap_servers}']\nsecurity_protocol = 'SASL_SSL'\n{ca}"
        of["plain"] = f"{login}sasl_mechanism = 'PLAIN'\nusername = 'plain'\npassword_file = '{self.folder / 'secret'}'\n"
        of["tokens"] = f"{login}sasl_mechanism = 'OAUTHBEARER'\noauth_token_command = 'cat {self.folder / 'token.jwt'}'\n"
        of["endpoint"] = (
            f"{login}sasl_mechanism = 'OAUTHBEARER'\noauth_token_url = '{self.tokens}'\noauth_client_id = 'operator'\n"
            f"oauth_client_secret_file = '{self.folder / 'secret'}'\n"
        )
        of["admin"] = "".join(f"{key} = {value!r}\n" for key, value in self.own.sandbox.context().items())
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
        both = ("-inkey", f"{name}.key", "-in", f"{name}.pem", "-out", f"{name}.p12")
        openssl("pkcs12", "-export", *both, "-passout", f"pass:{SECRET}")
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o600)
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "tokens.key")
    modulus = openssl("rsa", "-in", "tokens.key", "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
    key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k1", "n": _text(bytes.fromhex(modulus)), "e": "AQAB"}
    (folder / "jwks.json").write_text(json.dumps({"keys": [key]}))
    now = int(time.time())
    claims = {"sub": "operator", "iss": "tests", "aud": "kafka", "iat": now - 60, "exp": now + HOURS * 3600, "scope": "kafka"}
    body = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT", "kid": "k1"}, claims))
    signature = openssl("dgst", "-sha256", "-sign", "tokens.key", given=body.encode())
    (folder / "token.jwt").write_text(f"{body}.{_text(signature)}")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.fixture(scope="module")
def token_endpoint(tmp_path_factory):
    """Run an endpoint that gives the client ``operator`` the token in ``token.jwt``; gives its address and the folder of that file."""
    folder = tmp_path_factory.mktemp("identities")
    login = "Basic " + base64.b64encode(f"operator:{SECRET}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            known = self.headers["Authorization"] == login and form["grant_type"] == ["client_credentials"]
            token = {"access_token": (folder / "token.jwt").read_text(), "token_type": "Bearer", "expires_in": HOURS * 3600}
            body = json.dumps(token if known else {"error": "invalid_client"}).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token", folder
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def strict(own_brokers, token_endpoint):
    """Start such a broker; everybody who can log in may do everything."""
    (tokens, folder), (port,) = token_endpoint, pick(1)
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
            "sasl.enabled.mechanisms": f"{found['sasl.enabled.mechanisms']},OAUTHBEARER,PLAIN",
            "super.users": f"{found['super.users']};User:CN=alice;User:CN=bob;User:operator;User:plain",
            "listener.name.client.plain.sasl.jaas.config": f'{PLAIN} required user_plain="{SECRET}";',
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.audience": "kafka",  # Kafka 4.4 asks for both
            "sasl.oauthbearer.expected.issuer": "tests",
            "listener.name.client.oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            "listener.name.client.oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}.OAuthBearerValidatorCallbackHandler",
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "server_settings", asking)
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"
        patch.setattr(parts, "java_options", lambda *at: [allowed, *options(*at)])
        yield Strict(own_brokers(security="acl"), folder, port, tokens)
