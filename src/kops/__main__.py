"""The start of the process, as ``python -m kops`` and as the installed command.

What a start imports lives as long as the process: looking for garbage in it, during the imports and again at the end, would take
an eighth of the time of ``kops --help``.
"""

from __future__ import annotations

import gc


def main() -> int:
    """Run kops and return its exit code."""
    gc.disable()
    from kops.cli.frame.main import main as run

    gc.freeze()
    gc.enable()
    try:
        return run()
    finally:
        gc.freeze()


if __name__ == "__main__":
    raise SystemExit(main())
