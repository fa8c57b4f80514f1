"""The hash table in which the runner holds stores and the last rows of changelogs, beside Java's own."""

import subprocess

import pytest

from kops.gateways.machine.jdk import require_jdk
from support.own_code import host_class_path
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.streams


def test_a_table_holds_what_a_map_holds():
    """Keys added, changed and removed by chance, values that grow so that pages are copied, and one larger than a page."""
    command = [str(require_jdk().java), "-Xmx512m", "-cp", host_class_path("4.4.0"), "kops.runner.TableCheck"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.stdout.strip() == "same", done.stderr
