"""Methods of other packages on nodes: the agreed code, by explicit consent, at most at the engine's label."""

import io
import json
import os
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner
from village import NAMES, Village

import confide
from confide.cli import app
from confide.cli.federation import consented
from confide.errors import ConfideError
from confide.files.sources import tree_digest
from confide.files.toml import dumps
from confide.network.identity import Identity
from confide.node import daemon, outside
from confide.node import federation as federations
from confide.node.agreement import Papers

METHOD = '''
import pathlib
from dataclasses import dataclass
import numpy as np
from confide import Problem
from confide.algorithms import CDPADMM, PrivateZeroth

pathlib.Path(__file__).parents[2].joinpath("was_imported").touch()

@dataclass(frozen=True, eq=False)
class Theirs(CDPADMM):
    """Asks what CDPADMM asks."""

@dataclass(frozen=True, eq=False)
class Loud(CDPADMM):
    """Meets rows itself, and says what it likes of that."""
    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, noise)
    def guarantee(self, public):
        from confide.privacy import Guarantee
        return Guarantee("proven", "so says its author")

def capped(beta, X, y):
    return np.minimum(abs(X @ beta - y), 2.0)

@dataclass(frozen=True, eq=False)
class Boxed(PrivateZeroth):
    """Learns from values of a function, which no file can hold."""
    def local(self, t, state, block, public, noise):
        return super().local(t, state, Problem(block.shards, capped).block, public, noise)
'''
PARAMETERS = {"rounds": 6, "coupling": 0.2, "step": 2.0, "clip": 0.5}


def install(folder, version="1.0", method=METHOD, name="theirs"):
    """A package as pip leaves it."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "__init__.py").write_text("")
    (folder / name / "method.py").write_text(method)
    for old in folder.glob(f"{name}-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{kind} = {name}.method:{kind}" for kind in ("Theirs", "Loud", "Boxed")]
    (info / "entry_points.txt").write_text("\n".join(["[confide.algorithms]", *lines, f"CDPADMM = {name}.method:Theirs",
                                                      "Ours = confide.algorithms:CDPADMM"]) + "\n")  # fmt: skip
    return folder


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Where the package is installed; other tests do not see it."""
    folder = install(tmp_path / "site")
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "theirs"]:
        del sys.modules[name]


def command(*words):
    return CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "80"})


@pytest.fixture
def parties(tmp_path):
    return [
        Identity.create(tmp_path / name, name, f"127.0.0.1:{port}") for name, port in (("ash", 7101), ("elm", 7102))
    ]


def found(tmp_path, name="Theirs", *more):
    """`federation new` with a method of that name."""
    out = command("federation", "new", "--party", f"{tmp_path / 'ash'}/card.toml=40", "--party",
                  f"{tmp_path / 'elm'}/card.toml=50", "--features", 2, "--epsilon", 2, "--graph", "path",
                  "--algorithm", name, "--set", "rounds=6", "--set", "clip=0.5", "--output", tmp_path / f"{name}.toml",
                  *more)  # fmt: skip
    return out, tmp_path / f"{name}.toml"


def test_a_federation_says_whose_code_it_runs(site, parties, tmp_path):
    out, file = found(tmp_path)
    assert out.exit_code == 0, out.output
    document = tomllib.loads(file.read_text())
    assert document["package"] == {"name": "theirs", "version": "1.0", "entry": "theirs.method:Theirs",
                                   "source": tree_digest(site / "theirs")}  # fmt: skip
    assert {"step", "coupling", "noise"} <= document["algorithm"].keys()  # filled in, and calibrated
    assert "package theirs 1.0" in out.stdout and document["package"]["source"] in out.stdout
    f = federations.load(file)
    assert f.guarantee.label == "proven" and f.package.version == "1.0" and f.algorithm.name == "Theirs"
    said = " ".join(command("federation", "review", file).stdout.split())
    assert "Theirs is a method of the package theirs 1.0 (theirs.method:Theirs), not of confide" in said
    assert "Your node runs it only once you consent, by `--consent Theirs`" in said
    assert json.loads(command("federation", "review", file, "--json").stdout)["package"] == document["package"]
    ours = json.loads(found(tmp_path, "CDPADMM", "--json")[0].stdout)  # a name of ours is never another's
    assert "package" not in ours and "package" not in tomllib.loads((tmp_path / "CDPADMM.toml").read_text())
    assert "Whose code" not in command("federation", "review", tmp_path / "CDPADMM.toml").stdout


def test_the_label_is_the_engines_whatever_the_class_says(site, parties, tmp_path):
    out, file = found(tmp_path, "Loud")
    assert out.exit_code == 0 and "guarantee assumed" in out.stdout, out.output
    assert federations.load(file).guarantee.label == "assumed"
    outside.consent(tmp_path / "ash", federations.load(file), "Loud")
    with pytest.raises(ConfideError, match="nodes run proven methods; --allow-unproven"):
        daemon.run(tmp_path / "ash", file, tmp_path / "rows.npz", agree=True)


def test_other_code_is_refused_before_it_runs(site, parties, tmp_path):
    file = found(tmp_path)[1]
    for name in [name for name in sys.modules if name.split(".")[0] == "theirs"]:
        del sys.modules[name]
    trace = tmp_path / "was_imported"
    trace.unlink()
    assert federations.load(file).package is not None and trace.exists()
    trace.unlink()
    for change, words in (
        (lambda: install(site, method=METHOD + "\n# one more line\n"), "other code under the same version"),
        (lambda: install(site, method=METHOD) and (site / "theirs" / "more.so").write_bytes(b"1"), "other code under"),
        (lambda: ((site / "theirs" / "more.so").unlink(), install(site, "1.1")),
         "installed here is theirs 1.1 with theirs.method:Theirs, the federation has theirs 1.0"),
        (lambda: (site / "theirs-1.1.dist-info" / "entry_points.txt").write_text(""),
         "of the package theirs 1.0, which is not installed here"),
    ):  # fmt: skip
        change()
        for name in [name for name in sys.modules if name.split(".")[0] == "theirs"]:
            del sys.modules[name]
        for words_of in (("federation", "review", file), ("federation", "sign", file, "--home", tmp_path / "ash"),
                         ("node", "run", "--federation", file, "--home", tmp_path / "ash", "--agree")):  # fmt: skip
            out = command(*words_of)
            assert out.exit_code == 2 and words in out.stderr and len(out.stderr.splitlines()) == 1, out.output
        assert not trace.exists()


def test_nobody_signs_or_runs_it_without_consent(site, parties, tmp_path):
    file, home = found(tmp_path)[1], tmp_path / "ash"
    sign = ("federation", "sign", file, "--home", home, "--yes")
    out = command(*sign)
    words = "Theirs is code of the package theirs 1.0, not of confide: look at it, and give --consent Theirs"
    assert out.exit_code == 2 and words in out.stderr and not Papers.of(home, federations.load(file)).signed("ash")
    run = ("node", "run", "--federation", file, "--home", home, "--data", tmp_path / "none.npz", "--agree")
    out = command(*run)
    assert out.exit_code == 2 and words in out.stderr and not Papers.of(home, federations.load(file)).signed("ash")
    wrong = command(*sign, "--consent", "Loud")
    assert wrong.exit_code == 2 and "--consent Loud: must be Theirs" in wrong.stderr
    assert not outside.consented(home, federations.load(file))
    assert command(*sign, "--consent", "Theirs").exit_code == 0
    assert outside.consented(home, federations.load(file)) and not outside.consented(
        tmp_path / "elm", federations.load(file)
    )
    outside.check_consent(home, federations.load(file))
    # of this federation only, and of this code only
    other = federations.from_document({**tomllib.loads(file.read_text()), "run": "another"})
    assert not outside.consented(home, other)
    (home / outside.CONSENTS).write_text("{")
    with pytest.raises(ConfideError, match="not JSON"):
        outside.check_consent(home, federations.load(file))
    ours = found(tmp_path, "CDPADMM")[1]
    out = command("federation", "sign", ours, "--home", tmp_path / "elm", "--yes", "--consent", "CDPADMM")
    assert out.exit_code == 2 and "CDPADMM is confide's own and needs none" in out.stderr
    assert command("federation", "sign", ours, "--home", tmp_path / "elm", "--yes").exit_code == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_at_a_terminal_the_name_is_typed(site, parties, tmp_path, monkeypatch, capsys):
    f = federations.load(found(tmp_path)[1])
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    with pytest.raises(ConfideError, match="--consent yes: must be Theirs"):
        consented(f, tmp_path / "ash", None)
    monkeypatch.setattr(sys, "stdin", Terminal("Theirs\n"))
    consented(f, tmp_path / "ash", None)
    assert "code of the package theirs 1.0. To let it meet your rows, type its name" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    consented(f, tmp_path / "ash", None)  # nobody is asked twice


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": "0" * 63}, "package.source='0*': must be a SHA-256"),
        ({"version": 1.0}, "package.version=1.0: must be"),
        ({"more": "1"}, "unknown field package.more"), ({"name": ""}, "package.name='': must be a text"),
        ({"name": "others"}, "of the package others 1.0, which is not installed here"),
        ({"name": "The_Irs".replace("_", "")}, None),  # packages are named in any case
    ],
)  # fmt: skip
def test_a_package_that_cannot_be_is_one_line(site, parties, tmp_path, change, words):
    document = tomllib.loads(found(tmp_path)[1].read_text())
    document["package"] |= change
    if words is None:
        assert federations.from_document(document).algorithm.name == "Theirs"
        return
    with pytest.raises(ConfideError, match=words) as error:
        federations.from_document(document)
    assert "\n" not in str(error.value)


def test_names_are_not_mixed_up(site, parties, tmp_path):
    document = tomllib.loads(found(tmp_path)[1].read_text())
    plain = {key: value for key, value in document.items() if key != "package"}
    with pytest.raises(ConfideError, match="unknown name 'Theirs'"):
        federations.from_document(plain)
    with pytest.raises(ConfideError, match=r"algorithm 'CDPADMM': confide's own, or none, so that \[package\] must"):
        federations.from_document({**document, "algorithm": {**document["algorithm"], "name": "CDPADMM"}})
    entry = {**document["package"], "entry": "confide.algorithms:CDPADMM", "source": tree_digest(
        federations.Path(confide.__file__).parent)}  # fmt: skip
    with pytest.raises(ConfideError, match="a class of confide's, must be one of its own"):
        federations.from_document(
            {**document, "package": entry, "algorithm": {**document["algorithm"], "name": "Ours"}}
        )
    install(site, name="twins")
    out, file = found(tmp_path, "Theirs", "--name", "again")
    assert out.exit_code == 2 and "--output" in out.stderr  # it is there already
    file.unlink()
    out, _ = found(tmp_path)
    assert out.exit_code == 2 and "offered by theirs and twins, must be offered by one of them alone" in out.stderr


def test_a_black_box_is_in_no_file(site, parties, tmp_path):
    out = found(tmp_path, "PrivateZeroth", "--loss", "BlackBox:coefficients=2")[0]
    assert out.exit_code == 2 and "a BlackBox is a function, which no file can hold" in out.stderr


def test_the_hash_counts_every_byte_and_name_and_nothing_that_python_writes(tmp_path):
    place = install(tmp_path / "site") / "theirs"
    first = tree_digest(place)
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "method.cpython-311.pyc").write_bytes(b"0")
    assert tree_digest(place) == first
    (place / "method.py").rename(place / "other.py")
    moved = tree_digest(place)
    (place / "other.py").write_text(METHOD.replace("CDPADMM asks.", "CDPADMM asks!"))
    assert len({first, moved, tree_digest(place), tree_digest(place / "other.py")}) == 4


def agreed(folder, table):
    """Five parties that agree on a method of the package."""
    made = Village(folder / "village", {"name": "CDPADMM", **PARAMETERS, "noise": 0.1})
    made.document = {**made.document, "algorithm": table, "package": outside.offered(table["name"])._asdict()}
    made.file = made.write("federation.toml", made.document)
    made.federation = federations.load(made.file)
    return made


def learned(made, site, monkeypatch):
    """The models of real processes, which find the package as pip would have left it, and what the processes said."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    with made as village:
        running = [
            subprocess.Popen([sys.executable, "-c", "from confide.cli import main; main()", *village.arguments(name),
                              "--consent", village.federation.algorithm.name],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for name in NAMES
        ]  # fmt: skip
        try:
            said = [job.communicate(timeout=300) for job in running]
        finally:
            for job in running:
                job.kill()  # of one that has ended nothing is left to kill
        assert [job.returncode for job in running] == [0] * 5, said
        return village.models(), [out for out, _ in said]


def test_five_nodes_learn_by_it_as_the_simulator_does(site, tmp_path, monkeypatch):
    made = agreed(tmp_path, {"name": "Theirs", **PARAMETERS, "noise": 0.1})
    models, said = learned(made, site, monkeypatch)
    assert all("Theirs; guarantee none" in out for out in said)  # test noise protects nobody
    assert np.max(np.abs(models - made.simulated())) <= 1e-10
    assert dumps(made.document) == made.file.read_text()


BOXED = {"rounds": 3, "coupling": 0.2, "step": 0.2, "clip": 1.0, "directions": 2, "noise": 3.0}


def box_simulated(made):
    """What the simulator makes of the same function where it may be the loss itself."""
    from theirs.method import capped

    problem = confide.Problem(made.problem().shards, capped, made.federation.penalty)
    method = confide.algorithms.PrivateZeroth(**BOXED)
    return confide.simulate(problem, made.graph, method, seeds=[5], record=()).estimates[0]


def test_a_black_box_of_a_package_is_assumed_and_gives_what_the_loss_would(site, tmp_path):
    made = agreed(tmp_path, {"name": "Boxed", **BOXED})
    assert np.max(np.abs(made.simulated() - box_simulated(made))) <= 1e-12
    logistic = confide.algorithms.PrivateZeroth(**BOXED)  # the file's loss, which the method does not ask
    other = confide.simulate(made.problem(), made.graph, logistic, seeds=[5], record=()).estimates[0]
    assert np.max(np.abs(made.simulated() - other)) > 1e-3
    secure = {key: value for key, value in made.document.items() if key != "test_noise_seed"}
    guarantee = federations.from_document(secure).guarantee
    assert guarantee.label == "assumed" and "Boxed has a local of its own" in guarantee.reason


def test_five_nodes_learn_from_a_black_box_of_a_package(site, tmp_path, monkeypatch):
    made = agreed(tmp_path, {"name": "Boxed", **BOXED})
    models, _ = learned(made, site, monkeypatch)
    assert np.max(np.abs(models - box_simulated(made))) <= 1e-10
