"""python benchmarks [section ...] [--rounds N] [--write]."""

from __future__ import annotations

import sys
from pathlib import Path

# The plain reading, the hostile files and the real ones are those of the tests.
sys.path.append(str(Path(__file__).parent.parent / "tests"))

from run import main

sys.exit(main())
