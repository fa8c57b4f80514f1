"""A certificate authority for one sandbox, and its brokers' certificate, made with the JDK's ``keytool``."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path

from kops.config.durable import write_whole
from kops.core.errors import OperationFailed
from kops.gateways.machine.jdk import FOR_A_SHORT_RUN, Jdk
from kops.sandbox.model import HOST

_DAYS = "3650"
_OPTIONS = tuple(f"-J{option}" for option in FOR_A_SHORT_RUN)


def make_certificates(folder: Path, jdk: Jdk) -> None:
    """Create ``ca.pem``, ``broker.p12`` and ``store-password`` in a directory, unless they exist.

    The authority's key is thrown away afterwards, so nothing else can ever be signed with it.

    :raises OperationFailed: if keytool fails
    """
    if (folder / "broker.p12").exists():
        return
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    write_whole(part / "store-password", secrets.token_urlsafe(24) + "\n")
    keytool = jdk.tool("keytool")

    def run(command: str, *arguments: str) -> None:
        store = ("-storetype", "PKCS12", "-storepass:file", "store-password")
        done = subprocess.run([keytool, command, *_OPTIONS, *arguments, *store], cwd=part, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OperationFailed(f"keytool {command} failed: {(done.stdout + done.stderr).strip()}")

    key = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", _DAYS)
    run("-genkeypair", "-alias", "ca", "-keystore", "ca.p12", "-dname", "CN=kops sandbox CA", "-ext", "bc:c", *key)
    run("-exportcert", "-rfc", "-alias", "ca", "-keystore", "ca.p12", "-file", "ca.pem")
    run("-importcert", "-noprompt", "-alias", "ca", "-keystore", "broker.p12", "-file", "ca.pem")
    run("-genkeypair", "-alias", "broker", "-keystore", "broker.p12", "-dname", "CN=localhost", *key)
    run("-certreq", "-alias", "broker", "-keystore", "broker.p12", "-file", "broker.csr")
    names = ("-ext", f"san=ip:{HOST},dns:localhost", "-ext", "eku=serverAuth,clientAuth", "-validity", _DAYS)
    run("-gencert", "-alias", "ca", "-keystore", "ca.p12", "-infile", "broker.csr", "-outfile", "broker.crt", *names)
    run("-importcert", "-alias", "broker", "-keystore", "broker.p12", "-file", "broker.crt")
    for name in ("ca.p12", "broker.csr", "broker.crt"):
        (part / name).unlink()
    (part / "broker.p12").chmod(0o600)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
