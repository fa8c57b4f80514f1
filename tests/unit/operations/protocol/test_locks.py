"""Locks between two kops: held by a process, gone with it."""

import subprocess
import sys

import pytest

from kops.core.errors import StateMoved
from kops.operations.protocol.locks import exclusive
from support.patience import HANG_SECONDS

HOLD = """
import sys
from pathlib import Path
from kops.operations.protocol.locks import exclusive
with exclusive(Path(sys.argv[1]), "cluster", ["billing"]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_kops_is_refused_until_the_first_ends(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StateMoved, match="another kops is moving billing"), exclusive(tmp_path, "cluster", ["audit", "billing"]):
            pass
        with exclusive(tmp_path, "cluster", ["audit"]), exclusive(tmp_path, "other", ["billing"]):
            pass
        holder.kill()
        holder.wait(HANG_SECONDS)
    with exclusive(tmp_path, "cluster", ["audit", "billing"]):
        pass


def test_without_names_nothing_is_held(tmp_path):
    with exclusive(tmp_path / "locks", "cluster", []):
        assert not (tmp_path / "locks").exists()
