"""What is refused before anything is asked of a Spark Connect server, and what workers get of kops."""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kops
from kops.core.errors import Unreachable, UsageProblem
from kops.spark.driver.remote import check_url, connect
from support.patience import HANG_SECONDS

SHIP = """
import sys
from kops.spark.driver.remote import ship_kops

class Session:
    def addArtifacts(self, path, pyfile):
        with open(path, "rb") as shipped, open(sys.argv[1], "wb") as kept:
            kept.write(shipped.read())
        print(path, pyfile)

ship_kops(Session())
if sys.argv[2] == "fails":
    raise SystemExit(7)
"""
IMPORT = """
import importlib, sys, zipfile

sys.path = [sys.argv[1], *(path for path in sys.path if path not in sys.argv[2:])]
for name in zipfile.ZipFile(sys.argv[1]).namelist():
    if name.startswith("kops/spark/"):
        found = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        assert found.__file__.startswith(sys.argv[1]), found.__file__
"""
"""Without the folder that has all of kops, as on a worker where it is not installed."""


def test_an_address_carries_no_token():
    check_url("sc://spark.example:15002/;user_id=me")
    with pytest.raises(UsageProblem, match="carries a token") as refused:
        check_url("sc://spark.example/;use_ssl=true;token=hunter2")
    assert "SPARK_CONNECT_AUTHENTICATE_TOKEN" in str(refused.value.hint)
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="no Spark Connect server answers at"):
        connect(f"sc://127.0.0.1:{port}", {})


def test_shipped_modules_import_and_no_files_remain(tmp_path):
    kept = tmp_path / "kept.zip"
    for how, code in (("ends", 0), ("fails", 7)):
        command = [sys.executable, "-c", SHIP, str(kept), how]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS, env={**os.environ, "TMPDIR": str(tmp_path)}
        )
        path, is_python = done.stdout.split()
        assert (done.returncode, is_python) == (code, "True"), done.stderr
        assert Path(path).parent.name.startswith("kops-ship-")
        assert list(tmp_path.iterdir()) == [kept]
    assert not [
        name
        for name in zipfile.ZipFile(kept).namelist()
        if name.startswith(("kops/cli", "kops/operations", "kops/gateways/kafka/", "kops/output"))
    ]
    own = str(Path(kops.__file__).parents[1])
    imported = subprocess.run(
        [sys.executable, "-c", IMPORT, str(kept), own], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert imported.returncode == 0, imported.stderr
