"""How long tests wait for what may take long."""

HANG_SECONDS = 1800
"""After this, what a test waits for hangs; so does a test that takes as long (``timeout`` in pyproject.toml).

It ends a run that would never end, and judges no machine: none is so slow.
"""
