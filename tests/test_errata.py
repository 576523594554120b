"""The page "Where the papers are wrong": every check on it runs, in order, and holds."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "errata.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the page is in the checkout only")


def test_every_check_holds():
    text = PAGE.read_text(encoding="utf-8")
    checks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict = {}
    for check in checks:
        exec(compile(check, "docs/errata.md", "exec"), names)
    assert len(checks) >= 30 and sum("assert" in check for check in checks) == len(checks) - 1  # the first imports


def test_each_paper_has_its_part_and_the_site_shows_it():
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE) == ["CDP-ADMM", "Recycled", "D-ZOA", "FDP-ADMM", "PDML"]
    assert "errata.md" in (PAGE.parent.parent / "mkdocs.yml").read_text(encoding="utf-8")
