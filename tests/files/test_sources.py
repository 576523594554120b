"""Which files code is made of: followed by name, never one too few."""

import ast

import pytest

from confide.files.sources import HERE, digest, parsed, reads_errors, sources


@pytest.fixture
def made_of(tmp_path):
    """Files of a package `house`, and what a module of it is made of."""
    files = {
        "__init__": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.late import Late\n",
        "late": "class Late: pass\n",
        "plain": "A = 1\n",
        "chain": "from house.plain import A\n",
        "typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.plain import A\n",
        "inside": "def f():\n    from house.plain import A\n    return A\n",
        "room/__init__": "from house.room.one import One\nfrom .two import Two as Second\nEVERY = [One, Second]\n",
        "room/one": "class One: pass\n",
        "room/two": "from ..plain import A\nclass Two: pass\n",
    }
    for name, text in files.items():
        path = tmp_path / "house" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(code):
        place = {"house": tmp_path / "house"}
        return {str(f.relative_to(tmp_path / "house"))[:-3] for f in sources(ast.parse(code), "house.new", place)}

    return found


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("import math, numpy.linalg", set()),
        ("from house.plain import A", {"plain"}),
        ("from house import plain", {"plain"}),
        ("from . import plain", {"plain"}),
        ("from .chain import A", {"chain", "plain"}),
        ("import house.chain", {"chain", "plain"}),
        ("from house import typed", {"typed"}),  # what type checkers alone read computes nothing
        ("from house import inside", {"inside", "plain"}),
        ("from house import Late", {"late"}),  # loaded when first used
        ("import house\nhouse.Late()", {"late"}),
        ("import house as h\nh.room.One()", {"room/one"}),
        ("from house.room import One", {"room/one"}),
        ("from house.room import Second", {"room/two", "plain"}),
        ("from house import room\nroom.Second()", {"room/two", "plain"}),
        ("from house.room import EVERY", {"room/__init__", "room/one", "room/two", "plain"}),
        ("from house.room import *", {"room/__init__", "room/one", "room/two", "plain"}),
        ("from house import room\ngetattr(room, 'One')", {"room/__init__", "room/one", "room/two", "plain"}),
    ],
)
def test_names_are_followed_to_where_they_are_defined(made_of, code, files):
    assert made_of(code) == files


@pytest.mark.parametrize(
    ("new", "same"),
    [('"""Other words."""\nA = 1\n', True), ("# why\nA  =  1\n", True), ("A = 2\n", False), ("A = 1\nB = 1\n", False)],
)
def test_only_what_is_computed_counts(tmp_path, new, same):
    file = tmp_path / "one.py"
    file.write_text('"""Words."""\nA = 1\n')
    before = digest([file])
    file.write_text(new)
    assert (digest([file]) == before) is same


RAISES = 'def f(x):\n    if x:\n        raise ValueError(f"x={x}: must be 0")\n'


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (RAISES.replace("must be 0", "0 is meant"), True), (RAISES.replace('f"x={x}: must be 0"', 'f"{x}"'), True),
        (RAISES.replace("ValueError", "KeyError"), False), (RAISES.replace("{x}", "{g(x)}"), False),
        (RAISES.replace("if x", "if x > 0"), False), (RAISES.replace("must be 0\")", 'must be 0", x)'), False),
    ],
)  # fmt: skip
def test_the_words_of_errors_count_if_they_are_read(tmp_path, new, same):
    file = tmp_path / "one.py"
    file.write_text(RAISES)
    before = digest([file]), digest([file], words=False)
    file.write_text(new)
    assert digest([file]) != before[0] and (digest([file], words=False) == before[1]) is same


@pytest.mark.parametrize(
    "kept", ["raise StopIteration('a')", "raise SystemExit('a')", "print('a')", "raise Error(n='a')"]
)
def test_words_that_are_values_count(tmp_path, kept):
    file = tmp_path / "one.py"
    file.write_text(kept)
    before = digest([file], words=False)
    file.write_text(kept.replace("'a'", "'b'"))
    assert digest([file], words=False) != before


@pytest.mark.parametrize(
    ("handler", "reads"),
    [
        ("except OSError:\n    x = 1", False), ("except OSError as e:\n    raise ValueError(f'{e}') from e", False),
        ("except OSError as e:\n    x = e.errno", False),
        ("except OSError as e:\n    x = isinstance(e, EOFError)", False),
        ("except OSError as e:\n    x = str(e)", True), ("except OSError as e:\n    x = e.args", True),
        ("except OSError as e:\n    x = f(e)\n    raise ValueError(x)", True),
        ("except OSError:\n    x = sys.exc_info()", True), ("except OSError:\n    x = traceback.format_exc()", True),
    ],
)  # fmt: skip
def test_who_reads_the_words_of_errors(handler, reads):
    assert reads_errors(ast.parse(f"try:\n    f()\n{handler}\n")) is reads


def test_of_this_package():
    def found(code):
        return {str(file.relative_to(HERE["confide"])) for file in sources(ast.parse(code), "new")}

    files = found("import confide\nconfide.algorithms.CDPADMM(rounds=3)")
    assert {"algorithms/cdp_admm.py", "algorithms/linearized_admm.py", "problem/rows.py"} <= files
    assert "algorithms/dzoa.py" not in files and "cli/fit.py" not in files
    assert "algorithms/dzoa.py" in found("from confide.algorithms import REGISTRY")
    assert parsed(HERE["confide"] / "errors.py") is parsed(HERE["confide"] / "errors.py")  # read once
