"""The plugin's own tests run from its source, installed or not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
