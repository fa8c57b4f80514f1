"""The end of the process: its exit code is that of the command."""

import subprocess
import sys

from support.patience import HANG_SECONDS

DRIVER = """
import kops.cli.frame.main
from kops.__main__ import main

def run():
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        return 130

kops.cli.frame.main.main = run
raise SystemExit(main())
"""


def test_exit_code_survives_ctrl_c_inside_exec(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER, "utf-8")
    done = subprocess.run([sys.executable, "-m", "driver"], cwd=tmp_path, check=False, timeout=HANG_SECONDS)
    assert done.returncode == 130
