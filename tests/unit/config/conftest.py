"""Certificates of a throwaway authority, and connections of every kind."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kops.config.connection import Connection, Oauth
from kops.config.secrets import from_value

PASSWORD = 'p"a\\s s;=ü'
KEY_PASSWORD = "key-password"


@dataclass(frozen=True)
class Certificates:
    """PEM files and stores of one folder; encrypted ones open with KEY_PASSWORD."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / name.replace("__", "-").replace("_", "."))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("needs the openssl command")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=client", "-keyout", "client.key", "-out", "client.csr")
    openssl("x509", "-req", "-in", "client.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "client.pem", "-days", "2")
    encrypt = ("pkcs8", "-topk8", "-in", "client.key", "-passout", f"pass:{KEY_PASSWORD}")
    openssl(*encrypt, "-v1", "PBE-SHA1-3DES", "-out", "encrypted.key")
    openssl(*encrypt, "-out", "pbes2.key")
    openssl("rsa", "-in", "client.key", "-traditional", "-out", "pkcs1.key")
    openssl("pkcs12", "-export", "-in", "client.pem", "-inkey", "client.key", "-passout", f"pass:{KEY_PASSWORD}", "-out", "client.p12")
    both = (folder / "client.key").read_text() + (folder / "client.pem").read_text()
    (folder / "both.pem").write_text(both)
    for file in folder.iterdir():
        file.chmod(0o600)
    return Certificates(folder)


@pytest.fixture(scope="session")
def connections(certificates, tmp_path_factory):
    """One connection for each way to reach a cluster, by name."""
    servers = ("broker-1:9093", "broker-2:9093")
    password, key_password = from_value("a test", PASSWORD), from_value("a test", KEY_PASSWORD)
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(JWT)
    tls = {"ca_file": certificates.ca_pem}
    scram = {"username": "alice", "password": password}
    oidc = Oauth("http://127.0.0.1:1/token", "kops-client", from_value("a test", PASSWORD), "kafka")
    return {
        "plaintext": Connection(servers),
        "tls": Connection(servers, security_protocol="SSL", **tls),
        "tls-any-name": Connection(servers, security_protocol="SSL", verify_hostname=False, **tls),
        "mtls": Connection(
            servers, security_protocol="SSL", certificate_file=certificates.client_pem, key_file=certificates.client_key, **tls
        ),
        "mtls-encrypted": Connection(
            servers,
            security_protocol="SSL",
            certificate_file=certificates.client_pem,
            key_file=certificates.encrypted_key,
            key_password=key_password,
            **tls,
        ),
        "mtls-one-file": Connection(
            servers, security_protocol="SSL", certificate_file=certificates.both_pem, key_file=certificates.both_pem, **tls
        ),
        "mtls-pkcs12": Connection(
            servers, security_protocol="SSL", keystore_file=certificates.client_p12, keystore_password=key_password, **tls
        ),
        "sasl-plain": Connection(servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **scram),
        "sasl-scram-256": Connection(servers, security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", **scram, **tls),
        "sasl-scram-512": Connection(servers, security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", **scram, **tls),
        "oauth": Connection(servers, security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth=oidc, **tls),
        "oauth-command": Connection(
            servers, security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth=Oauth(token_command=f"cat {token}"), **tls
        ),
    }


# {"alg":"none"} . {"sub":"kops","iat":1,"exp":4102444800} . signature
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJrb3BzIiwiaWF0IjoxLCJleHAiOjQxMDI0NDQ4MDB9.c2ln"
JWT_EXPIRY = 4102444800.0
