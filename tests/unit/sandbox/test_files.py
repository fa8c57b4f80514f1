import subprocess
import sys

import pytest

from kops.core.errors import Refused
from kops.sandbox.files import argument_lines, locked, property_lines


def test_property_lines_are_escaped_for_java():
    written = property_lines({"log.dirs": "C:\\kops\\dätä", "padded": " x", "emoji": "\N{GRINNING FACE}", "two": "a\nb"})
    assert written == "log.dirs=C:\\\\kops\\\\d\\u00e4t\\u00e4\npadded=\\ x\nemoji=\\ud83d\\ude00\ntwo=a\\u000ab\n"


def test_argument_lines_are_quoted_for_java():
    assert argument_lines(["-cp", 'a b:"c"', "back\\slash"]) == '"-cp"\n"a b:\\"c\\""\n"back\\\\slash"\n'


def test_lock_held_by_another_process_is_refused(tmp_path):
    lock = tmp_path / "lock"
    code = f"import fcntl, sys\nf = open({str(lock)!r}, 'a')\nfcntl.flock(f, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Refused, match="another kops is changing sandbox x"), locked(lock, what="sandbox x", seconds=0.2):
            pass
        holder.communicate()
    with locked(lock, what="sandbox x", seconds=0):
        pass
