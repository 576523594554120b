"""What a command loads before it answers. Libraries that it has no use for would be most of its time."""

import os
import subprocess
import sys

HEAVY = (
    "numba", "scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats", "sklearn", "pandas",
    "pyarrow", "matplotlib", "networkx", "dp_accounting", "joblib", "distributed",
)  # fmt: skip
LIGHT = ("numpy", "cryptography", "asyncio", "rich", "confide.algorithms", "confide.node.daemon")
CODE = (
    "import sys\nfrom confide.cli import main\ncode = 0\n"
    "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
    f"watched = [m for m in {(*HEAVY, *LIGHT)} if m in sys.modules]\n"
    "own = [m for m in sys.modules if m.startswith(('confide.cli.', 'confide_experiments.'))]\n"
    "print(*watched, *own, file=sys.stderr)\nsys.exit(code)"
)


def modules(*arguments: str, code: int = 0) -> set[str]:
    """Those of the libraries above that a command loads, and all files of the command line and of experiments."""
    kept = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}  # it makes SciPy load more
    out = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, env=kept)
    assert out.returncode == code, out.stderr
    return set(out.stderr.splitlines()[-1].split())


def loaded(*arguments: str, code: int = 0) -> set[str]:
    """The heavy ones alone."""
    return modules(*arguments, code=code) & {*HEAVY}
