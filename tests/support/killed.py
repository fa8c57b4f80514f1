"""kops that ends by SIGKILL at a step of the safety protocol: ``python killed.py STEP ARGUMENT...``."""

import os
import signal
import subprocess
import sys
from functools import wraps
from pathlib import Path

BEFORE_ENTRY, WITH_ENTRY, FIRST, ALL, READ_BACK, CLOSED = STEPS = (
    "before the entry is written",
    "before anything is sent",
    "after the first result",
    "before it is read back",
    "before the entry is closed",
    "before earlier entries are marked",
)


def run(step: str, *arguments: object) -> None:
    """Run kops as a process of its own until it ends itself at a step."""
    from support.patience import HANG_SECONDS

    command = [sys.executable, __file__, step, *map(str, arguments)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert ended.returncode == -signal.SIGKILL, (ended.returncode, step, ended.stdout, ended.stderr)


def end_at(step: str) -> None:
    """Let this process end at a step."""
    from kops.operations.protocol import run as protocol
    from kops.operations.protocol.journal import Journal

    def at(here):
        if here == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(here, function):
        @wraps(function)
        def ending(*arguments, **options):
            at(here)
            return function(*arguments, **options)

        return ending

    carry_out = protocol._carry_out

    @wraps(carry_out)
    def carried_out(services, plan, mutation, **links):
        apply = mutation.apply

        def applied(services, plan):
            at(WITH_ENTRY)
            for result in apply(services, plan):
                yield result
                at(FIRST)  # the protocol has taken it
            at(ALL)

        mutation.apply = applied
        return carry_out(services, plan, mutation, **links)

    protocol._carry_out = carried_out
    protocol._mark = before(CLOSED, protocol._mark)
    Journal.open = before(BEFORE_ENTRY, Journal.open)
    Journal.close = before(READ_BACK, Journal.close)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent.parent)  # support/ has names of libraries
    from kops.cli.frame.main import main

    end_at(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
