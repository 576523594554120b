"""Every module compiles and is imported without a warning; one that needs an extra says which."""

import subprocess
import sys
import warnings
from pathlib import Path

import confide

FILES = sorted(Path(confide.__file__).parent.rglob("*.py"))
CODE = r"""
import pkgutil, warnings
warnings.filterwarnings("error", module=r"confide(\.|$)")
import confide
from confide.errors import MissingExtra
for found in pkgutil.walk_packages(confide.__path__, "confide.", onerror=lambda name: None):
    try:
        __import__(found.name)
    except MissingExtra:
        print(found.name, "needs", "an extra")
    except ModuleNotFoundError as error:
        if (error.name or "confide").startswith("confide"):
            raise
        print(found.name, "needs", error.name)
    else:
        print(found.name)
"""
EXTRAS = ("an extra", "cryptography", "dp_accounting", "joblib", "matplotlib", "opendp", "pyarrow", "sklearn")


def test_every_file_compiles_without_a_warning():
    with warnings.catch_warnings(action="error"):
        for file in FILES:
            compile(file.read_bytes(), str(file), "exec")


def test_every_module_is_imported_without_a_warning():
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    said = dict(line.partition(" needs ")[::2] for line in out.stdout.splitlines())
    assert set(said.values()) <= {"", *EXTRAS}
    met = {name for name, needs in said.items() if not needs}
    here = {file.relative_to(FILES[0].parent.parent).with_suffix("") for file in FILES if file.name != "__init__.py"}
    assert {".".join(file.parts) for file in here if file.parts[1] != "estimators"} <= said.keys()
    assert {"confide.privacy.accounting", "confide.problem.kernels", "confide.network.wire", "confide.cli"} <= met
