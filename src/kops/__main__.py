"""The start of the process, as ``python -m kops`` and as the installed command.

Imported modules live as long as the process: garbage collection during the imports and at exit would take
an eighth of the time of ``kops --help``.
"""

from __future__ import annotations

import gc


def main() -> int:
    gc.disable()
    from kops.cli.frame.main import main as run

    gc.freeze()
    gc.enable()
    try:
        return run()
    finally:
        # After Ctrl-C in an exec() of text, as in @dataclass, CPython ends by SIGINT, not with the exit code; the next exec() resets that.
        exec("")  # noqa: S102
        gc.freeze()


if __name__ == "__main__":
    raise SystemExit(main())
