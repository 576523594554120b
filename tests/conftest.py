"""Reproduction data for the tests that want it: CONFIDE_DATA, or a folder beside the checkout."""

import os
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("CONFIDE_DATA", str(SHARED))
