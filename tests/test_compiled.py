"""Where compiled functions are kept, and that old ones are never found again."""

import ast
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from confide import compiled
from confide.compiled import folder, kernel_files
from confide.files.sources import HERE

PACKAGE = HERE["confide"]
DRAW = """
import numpy as np
from confide import compiled
from confide.privacy.noise import UNIFORM, fill
out = np.empty((1, 1, 4))
fill(np.array([7]), np.array([3]), 5, 11, UNIFORM, out, 0, 1)
print(compiled.folder(), sum(fill.stats.cache_hits.values()), *out.ravel())
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, whose files a test may edit."""
    shutil.copytree(PACKAGE, tmp_path / "confide", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "confide"


def start(copy, home):
    # Python's own bytecode would be taken for an edited file's, if size and second of change are the same
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "CONFIDE_CACHE": str(home),
                   "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", DRAW], env=environment, stdout=subprocess.PIPE, text=True)


def draw(copy, home):
    """The folder used, how many functions came out of it, and the numbers drawn."""
    job = start(copy, home)
    said = job.communicate(timeout=250)[0].split()
    assert job.returncode == 0
    return said[0], int(said[1]), said[2:]


def test_editing_an_inlined_file_compiles_again(copy, tmp_path):
    """`fill` is in noise.py, and has the loop of philox.py inside."""
    first = draw(copy, tmp_path / "cache")
    again = draw(copy, tmp_path / "cache")
    assert first[1] == 0 and again[1] == 1  # the second process compiles nothing
    assert again[0] == first[0] and again[2] == first[2]
    philox = copy / "privacy" / "philox.py"
    philox.write_text(philox.read_text().replace("0xD2511F53", "0xD2511F55"))
    edited = draw(copy, tmp_path / "cache")
    assert edited[0] != first[0] and edited[1] == 0 and edited[2] != first[2]
    assert edited[2] == draw(copy, tmp_path / "empty")[2]
    philox.write_text(philox.read_text().replace("0xD2511F55", "0xD2511F53"))
    assert draw(copy, tmp_path / "cache")[1:] == again[1:]  # what was kept before is still there


def test_another_copy_of_the_package_finds_what_the_first_compiled(copy, tmp_path):
    """Another environment, a checkout beside it, the same installed again."""
    first = draw(copy, tmp_path / "cache")
    second = shutil.copytree(copy, tmp_path / "second" / "confide", ignore=shutil.ignore_patterns("__pycache__"))
    for file in second.rglob("*.py"):
        os.utime(file, (1e9, 1e9))
    again = draw(second, tmp_path / "cache")
    assert first[1] == 0 and again == (first[0], 1, first[2])


def test_an_edit_that_keeps_size_and_time_is_seen(copy, tmp_path):
    """As files of two versions of a package, which may all have the time of the archive."""
    philox = copy / "privacy" / "philox.py"
    os.utime(philox, (1e9, 1e9))
    first = draw(copy, tmp_path / "cache")
    before = philox.stat()
    philox.write_text(philox.read_text().replace("0xD2511F53", "0xD2511F55"))
    os.utime(philox, (1e9, 1e9))
    now = philox.stat()
    assert (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)
    edited = draw(copy, tmp_path / "cache")
    assert edited[0] != first[0] and edited[1] == 0 and edited[2] != first[2]


def test_sources_are_parsed_once(tmp_path, monkeypatch):
    """The second start finds the folder by what the files hold."""
    monkeypatch.setenv("CONFIDE_CACHE", str(tmp_path))
    first = compiled.folder.__wrapped__()
    monkeypatch.setattr(compiled, "kernel_files", lambda: pytest.fail("parsed again"))
    assert compiled.folder.__wrapped__() == first and first.parent == tmp_path


def test_a_kernel_is_made_when_it_is_first_used():
    code = (
        "import sys, confide.problem.kernels, confide.privacy.secure, confide.network.exchange, confide.algorithms\n"
        "assert not {'numba', 'llvmlite', 'scipy'} & sys.modules.keys(), 'loaded by an import'\n"
        "from confide.problem.margin import slope1\n"
        "assert slope1(1, 0.0, 3.0, 1.0) == 2.0 and 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_are_pickled_by_name():
    from confide.privacy.philox import philox

    assert pickle.loads(pickle.dumps(philox)) is philox and philox.__doc__ and philox.__name__ == "philox"


def test_processes_that_compile_at_once_agree_and_leave_one_cache(copy, tmp_path):
    jobs = [start(copy, tmp_path / "cache") for _ in range(4)]
    said = {job.communicate(timeout=250)[0].split(maxsplit=2)[2] for job in jobs}
    assert len(said) == 1 and all(job.returncode == 0 for job in jobs)
    assert not list((tmp_path / "cache").rglob("*.tmp.*")) and draw(copy, tmp_path / "cache")[1] == 1


def test_without_a_place_to_write_functions_are_compiled_and_not_kept(copy, tmp_path):
    (tmp_path / "file").write_text("")
    beside = draw(copy, tmp_path / "file")  # no folder can be made in a file
    assert Path(beside[0]).parent == copy / "__pycache__"
    shutil.rmtree(copy / "__pycache__")
    (copy / "__pycache__").write_text("")
    nowhere = draw(copy, tmp_path / "file")
    assert nowhere[0] == "None" and nowhere[2] == beside[2]


def test_a_new_folder_leaves_the_two_used_last(copy, tmp_path):
    cache = tmp_path / "cache"
    for age, name in enumerate(("kernels-new", "kernels-older", "kernels-oldest", "kernels-before")):
        (cache / name).mkdir(parents=True)
        os.utime(cache / name, (1e9 - age, 1e9 - age))
    (cache / "of-somebody-else").mkdir()
    made = Path(draw(copy, cache)[0]).name
    assert {p.name for p in cache.iterdir()} == {made, "kernels-new", "kernels-older", "of-somebody-else"}


def test_every_compiled_function_is_kept_this_way():
    """A file that takes a compiling decorator from Numba itself would not count."""
    own = ("njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc", "overload", "intrinsic")
    for file in PACKAGE.rglob("*.py"):
        names = [a.name for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom)
                 and (n.module or "").startswith("numba") for a in n.names]  # fmt: skip
        assert file.name == "compiled.py" or not set(names) & set(own), file


def test_the_kernels_here_are_found():
    named = {str(file.relative_to(PACKAGE)) for file in kernel_files()}
    assert {"problem/kernels.py", "problem/rows.py", "problem/margin.py", "privacy/philox.py", "threads.py"} <= named
    assert "cli/fit.py" not in named and "algorithms/cdp_admm.py" not in named
    assert folder() is None or folder().is_dir()
