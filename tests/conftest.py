"""Reproduction data for the tests that want it: CONFIDE_DATA, or a folder beside the checkout."""

import os
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips nine of its checks of estimators without it
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("CONFIDE_DATA", str(SHARED))
