"""What a run of kops holds in memory at most."""

import subprocess
import sys

from support.patience import HANG_SECONDS

# In a process between: a child's peak counts what its parent held when it was forked, and these tests hold a lot.
_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


def peak_megabytes(*arguments: object) -> int:
    """Run kops to its end, which has to be a good one, and return the most that it held."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "kops", *map(str, arguments)]
    code, megabytes = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=True).stdout.split()
    assert code == "0", f"kops ended with {code}"
    return int(megabytes)
