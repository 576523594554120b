"""What a command loads before it answers: libraries that it has no use for would be most of its time."""

import subprocess
import sys
from pathlib import Path

import pytest

from confide.privacy import Gaussian
from confide.privacy.ledger import Ledger

HEAVY = ("numba", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn", "pandas", "matplotlib", "dp_accounting")
ALGEBRA = ("scipy.special",)  # what accountants need
CODE = (
    "import sys\nfrom confide.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    f"print(*[m for m in {(*HEAVY, *ALGEBRA)} if m in sys.modules], file=sys.stderr)"
)


def loaded(*arguments: str) -> set[str]:
    """Those of the libraries above that a command loads."""
    out = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True)
    return set(out.stderr.split())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "ledger") as book:
        book.open_population("ward", 2.0, 1e-6)
        book.charge("ward", "fit", 1, [Gaussian(0.1, 1.0)], method="CDPADMM", guarantee="proven: clipped")
    return tmp_path / "ledger"


def test_the_list_of_methods() -> None:
    assert loaded("algorithms") <= {*ALGEBRA}


def test_an_account(ledger: Path) -> None:
    assert loaded("account", "--ledger", str(ledger)) <= {*ALGEBRA}


def test_rows_that_are_only_looked_at(tmp_path: Path) -> None:
    """pandas comes with pyarrow, where both are installed."""
    data, schema = tmp_path / "rows.csv", tmp_path / "schema.toml"
    data.write_text("age,dose,ill\n" + "".join(f"{30 + i % 40},{i % 7},{i % 2}\n" for i in range(60)))
    assert loaded("schema", "suggest", str(data), "--label", "ill", "--output", str(schema)) <= {"pandas"}
    assert loaded("schema", "check", str(data), "--schema", str(schema)) <= {"pandas"}
