"""What workers of a cluster get of kops: it imports there, and nothing of it is left in the temporary folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import kops

SHIP = """
import sys
from kops.spark.driver.ship import ship_kops

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


def test_it_imports_and_nothing_stays(tmp_path):
    kept = tmp_path / "kept.zip"
    for how, code in (("ends", 0), ("fails", 7)):
        command = [sys.executable, "-c", SHIP, str(kept), how]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "TMPDIR": str(tmp_path)})
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
    imported = subprocess.run([sys.executable, "-c", IMPORT, str(kept), own], capture_output=True, text=True, check=False, timeout=120)
    assert imported.returncode == 0, imported.stderr
