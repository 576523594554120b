"""The wheel works without the checkout: installed alone, with everything, and with each extra by itself.

The core is really installed, then `all` beside it. For single extras the imports of all others are blocked there. Each
command then works, or says in one line which extra it needs; what is in the checkout only says that. One environment
for all, since kernels are kept by the place of their sources: another one would compile them again.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
needs_checkout = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="wheels are built from the checkout")
pytestmark = needs_checkout
EXTRAS = {  # what each brings of what we import
    "plot": {"matplotlib"},
    "accounting": {"dp_accounting"},
    "secure": {"cryptography"},
    "opendp": {"opendp"},
    "sklearn": {"sklearn", "joblib", "threadpoolctl", "cryptography"},
    "parquet": {"pyarrow"},
    "node": {"cryptography"},
    "metrics": {"prometheus_client"},
    "reproduce": {"matplotlib", "dp_accounting", "joblib", "sklearn", "threadpoolctl"},
}
EVERY = set().union(*EXTRAS.values())
REFUSED = {  # what is in the checkout only, and what would run for ever
    "reproduce": "the experiments are not installed",
    "bench": "benchmarks/run.py",
    "relay": "nosuch.toml",
}
COMMANDS = {
    "algorithms": "algorithms --json",
    "schema": "schema check data.csv --schema schema.toml",
    "fit": "fit data.csv --schema schema.toml --epsilon 5 --rounds 3 --out new.json",
    "fit, Parquet": "fit data.parquet --schema schema.toml --epsilon 5 --rounds 3 --out other.json",
    "fit, seeded": "fit data.csv --schema schema.toml --epsilon 5 --rounds 3 --seed 1 --out seeded.json",
    "predict": "predict model.json data.csv --json",
    "plan": "plan --parties 2 --rows 200 --features 2 --epsilon 1 --seeds 1 --rounds 3",
    "plan, picture": "plan --parties 2 --rows 200 --features 2 --epsilon 1 --seeds 1 --rounds 3 --plot plan.png",
    "account": "account --ledger ledger.sqlite",
    "audit": "audit CDPADMM --epsilon 4 --rounds 2 --repetitions 100 --output audit",
    "randomize": "randomize --task flu --person 17 --epsilon 1 --label=-1 --book book.db",
    "report": "report run.npz --output report.html",
    "sweep": "sweep study.py --out sweep --jobs 1 --json",
    "reproduce": "reproduce",
    "bench": "bench",
    "compile": "compile",
    "relay": "relay --federation nosuch.toml --home a",
    "node": "node init --name ash --listen 127.0.0.1:7001 --home ash",
    "federation": "federation new --party card-a.toml=40 --party card-b.toml=50 --features 2 --epsilon 1 --graph path",
    "demo": "demo --seeds 1 --output demo",
}
SCHEMA = """[label]
name = "ill"
kind = "binary"
values = ["no", "yes"]
[group]
name = "site"
values = ["north", "south"]
[columns.age]
kind = "numeric"
low = 0
high = 100
"""
STUDY = """import numpy as np, confide
X = np.random.default_rng(0).normal(size=(40, 2))
shards = confide.Shards.split(X, np.where(X[:, 0] > 0, 1.0, -1.0), 2)
problems = {"two": confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.1))}
methods = {"CDP": confide.algorithms.CDPADMM(rounds=2, clip=1.0, noise=0.1)}
graphs = {"path": confide.Graph.path(2)}
"""
BLOCK = """import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
# All commands, each in a process of its own that begins with what the core always has: {name: words} -> out/name.*
FORKED = """import json, os, sys
import numba, scipy.optimize, scipy.sparse, scipy.special, scipy.stats, typer
for name, words in json.loads(sys.argv[1]).items():
    child = os.fork()
    if not child:
        for number, kind in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"out/{name}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_EXCL), number)
        sys.argv[1:] = words.split()
        from confide.cli import main
        sys.exit(main())
    with open(f"out/{name}.code", "x") as file:
        file.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the commands read, made by the environment of the tests, which has every extra."""
    folder = tmp_path_factory.mktemp("files")
    rows = [f"{20 + k % 60},{'north' if k % 2 else 'south'},{'yes' if k % 60 > 25 else 'no'}" for k in range(200)]
    (folder / "data.csv").write_text("\n".join(["age,site,ill", *rows]) + "\n")
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "study.py").write_text(STUDY)
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    parquet.write_table(csv.read_csv(folder / "data.csv"), folder / "data.parquet")
    here = [sys.executable, "-c", "from confide.cli import main; main()"]
    ledger = ["--ledger", "ledger.sqlite", "--population", "p", "--budget", "9"]
    fit = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "5", "--rounds", "3", "--out", "model.json"]
    for words in ([*fit, "--run", "run.npz", *ledger],
                  ["node", "init", "--name", "birch", "--listen", "127.0.0.1:7002", "--home", "a"],
                  ["node", "init", "--name", "cedar", "--listen", "127.0.0.1:7003", "--home", "b"]):  # fmt: skip
        done = subprocess.run([*here, *words], cwd=folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    for one in ("a", "b"):
        shutil.copy(folder / one / "card.toml", folder / f"card-{one}.toml")
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that the checkout stays as it is."""
    copy = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "-w",
        "dist",
        ".",
    ]
    done = subprocess.run(words, cwd=copy, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def core(wheel, files, tmp_path_factory):
    """An environment of the wheel alone: its folder, and which commands named an extra there."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "venv"], cwd=folder, check=True, timeout=600)
    install(folder, wheel)
    return folder, check(one_by_one(folder), files, folder / "core", EVERY)


@pytest.fixture(scope="module")
def everything(core, wheel):
    """The same environment, after `all` has been installed, too: its folder."""
    install(core[0], f"{wheel}[all]")
    return core[0]


def install(folder, what):
    """No files are compiled beforehand: most are never imported."""
    pip = [sys.executable, "-m", "pip", "--python", folder / "venv/bin/python", "--quiet"]
    words = [*pip, "--disable-pip-version-check", "install", "--no-compile", "-c", ROOT / "constraints.txt", what]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1500, env=outside())
    assert done.returncode == 0, done.stderr


def outside():
    """The environment of somebody who has no checkout, but the kernels that are compiled already."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("CONFIDE_", "PYTHON")) or k == "CONFIDE_CACHE"}


def one_by_one(folder):
    """Runs commands as they are typed."""

    def run(here):
        for name, words in COMMANDS.items():
            done = subprocess.run([folder / "venv/bin/confide", *words.split()], cwd=here, capture_output=True,
                                  text=True, timeout=600, env={**outside(), "COLUMNS": "80"})  # fmt: skip
            yield name, done.returncode, done.stdout, done.stderr

    return run


def forked(folder, blocked):
    """Runs commands in processes that are told that some modules are not there, and so are those that they start."""

    def run(here):
        for inner in ("hook", "out"):
            (here / inner).mkdir()
        (here / "hook" / "sitecustomize.py").write_text(BLOCK.format(blocked=blocked))
        done = subprocess.run([folder / "venv/bin/python", "-P", "-c", FORKED, json.dumps(COMMANDS)], cwd=here,
                              capture_output=True, text=True, timeout=1500,
                              env={**outside(), "COLUMNS": "80", "PYTHONPATH": str(here / "hook")})  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        for name in COMMANDS:
            code, out, err = ((here / "out" / f"{name}.{kind}").read_text() for kind in ("code", "stdout", "stderr"))
            yield name, int(code), out, err

    return run


def check(run, files, folder, absent):
    """Every command, in a folder of its own far from the checkout; those that name an extra they need."""
    shutil.copytree(files, folder)
    missing = {}
    for name, code, out, err in run(folder):
        said = f"{name}: {out}{err}"
        assert "Traceback" not in err, said
        lines = err.strip().splitlines()
        found = re.search(r"pip install '?confide\[([\w,]+)\]", err)
        if found:
            extra = found[1].split(",")[0]
            assert code == 2 and lines[-1].startswith("confide: ") and extra in EXTRAS, said
            assert EXTRAS[extra] & absent, f"{extra} is installed, but {said}"
            missing[name] = extra
        elif name in REFUSED:
            assert code == 2 and len(lines) == 1 and REFUSED[name] in lines[0], said
        else:
            assert code == 0, said
    return missing


def test_installed_alone(core):
    _, missing = core
    assert {"node", "fit, Parquet", "plan, picture"} <= missing.keys()
    assert not missing.keys() & {"algorithms", "schema", "predict", "account", "report", "randomize"}


def test_installed_with_everything(everything, files, tmp_path):
    assert check(one_by_one(everything), files, tmp_path / "here", set()) == {}


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_by_itself(extra, everything, files, tmp_path):
    blocked = EVERY - EXTRAS[extra]
    missing = check(forked(everything, blocked), files, tmp_path / "here", blocked)
    assert extra not in missing.values()  # whatever needs this one has it


def test_experiments_are_found_in_the_current_folder(everything, tmp_path):
    """The wheel has none: whoever has the folder beside them reproduces with it."""
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns("__pycache__"))
    where = "import confide, sys; print(confide.__file__, file=sys.stderr); from confide.cli import main; main()"

    def reproduce(*words):
        done = subprocess.run([everything / "venv/bin/python", "-P", "-c", where, "reproduce", *words, "--json"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=600, env=outside())  # fmt: skip
        assert done.stderr.startswith(str(everything / "venv")), done.stderr
        return json.loads(done.stdout)["experiments"]

    files = {f"{file.parent.name}/{file.stem}" for file in (ROOT / "experiments").glob("[a-z]*/[a-z]*.py")}
    assert {f"{one['paper']}/{one['name']}".replace("-", "_") for one in reproduce()} == files
    (one,) = reproduce("cdp-admm", "fig1", "--trials", "1", "--jobs", "1")
    assert one["error"] is None and (tmp_path / "reproductions/cdp-admm/fig1/data.csv").is_file()


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == project.keys() - {"all", "docs", "test", "check"}
    assert set(re.findall(r"\w+", project["all"][0].partition("[")[2])) == set(EXTRAS)


def test_every_command_is_run():
    from confide import cli

    assert {words.split()[0] for words in COMMANDS.values()} == {*cli.COMMANDS}
