"""The division of the tests into fast, slow and long names tests that exist, and `make` runs every one of them."""

import re
from pathlib import Path

import pytest
from division import FIRST, LONG, SAMPLED, SLOW, TOGETHER

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", [*LONG, *SAMPLED, *SLOW, *TOGETHER, *FIRST])
def test_every_name_is_one_of_a_test(name):
    file, _, test = name.partition("::")
    text = (TESTS / file).read_text()
    assert f"def {test}(" in text if test else "def test_" in text


def test_nothing_is_left_out_by_all_commands():
    """`not long` and `long` are everything; CI runs both."""
    root = TESTS.parent
    if not (root / "Makefile").exists():
        pytest.skip("the Makefile is in the checkout only")
    commands = dict(re.findall(r"^(test[\w-]*):.*\n\t(.*)$", (root / "Makefile").read_text(), re.M))
    assert commands["test"].endswith('-m "not long"') and commands["test-long"].endswith("-m long")
    ran = re.findall(r"^make (\S+)$", (root / ".ci" / "run").read_text(), re.M)
    assert ran == ["check", "test", "test-long", "test-pythons"]
