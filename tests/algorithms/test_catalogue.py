"""Methods that other packages offer by an entry point are found by name, and held to the same labels."""

import sys

import pytest
from typer.testing import CliRunner

import confide
from confide.algorithms import REGISTRY
from confide.algorithms.catalogue import catalogue, method_class
from confide.cli import app

METHOD = '''
from dataclasses import dataclass
from confide.algorithms import LinearizedADMM

@dataclass(frozen=True, eq=False)
class Theirs(LinearizedADMM):
    """Asks what LinearizedADMM asks."""

@dataclass(frozen=True, eq=False)
class Loud(LinearizedADMM):
    """Meets rows itself."""
    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, noise)
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package as importlib sees it."""
    (tmp_path / "theirs.py").write_text(METHOD)
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    lines = ("Theirs = theirs:Theirs", "Loud = theirs:Loud", "CDPADMM = theirs:Theirs", "Absent = theirs:Absent",
             "Number = math:pi")  # fmt: skip
    (info / "entry_points.txt").write_text("[confide.algorithms]\n" + "\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield info
    sys.modules.pop("theirs", None)  # other tests have another package of that name


def test_a_method_of_another_package_is_found_by_its_name(package):
    assert method_class("Theirs").__module__ == "theirs"
    assert method_class("CDPADMM") is REGISTRY["CDPADMM"]  # nobody takes a name of ours
    with pytest.raises(ValueError, match=r"'Absent' of theirs:Absent: can't be loaded"):
        method_class("Absent")
    with pytest.raises(TypeError, match="must be a class"):
        method_class("Number")
    with pytest.raises(ValueError, match=r"method 'Nobody': must be one of ADMM, .*, Theirs, Loud"):
        method_class("Nobody")


def test_its_label_follows_from_what_it_overrides(package):
    X = confide.Shards.split([[0.1, 0.2]] * 8, [1.0, -1.0] * 4, 2).clip_rows(1.0)
    public = confide.Problem(X, confide.losses.Logistic()).public(confide.Graph.path(2))
    labels = [method_class(name)(rounds=2, clip=1.0, noise=1.0).guarantee(public).label for name in ("Theirs", "Loud")]
    assert labels == ["proven", "assumed"]


def test_it_is_listed_and_swept(package):
    lines = (package / "entry_points.txt").read_text().splitlines()
    (package / "entry_points.txt").write_text("\n".join(lines[:3]) + "\n")
    assert list(catalogue()) == [*REGISTRY, "JointDescent", "Theirs", "Loud"]
    out = CliRunner().invoke(app, ["algorithms", "--json"])
    assert out.exit_code == 0 and '"Theirs"' in out.stdout
    X = confide.Shards.split([[0.1, 0.2]] * 8, [1.0, -1.0] * 4, 2).clip_rows(1.0)
    problem = confide.Problem(X, confide.losses.Logistic(), confide.penalties.L2(0.1))
    found = confide.sweep(["ADMM", "Theirs"], problem, confide.Graph.path(2), seeds=(0,), jobs=1, record=())
    assert [labels["method"] for labels, _ in found.found] == ["ADMM", "Theirs"]


def test_it_is_fitted_and_audited_by_its_name(package, tmp_path):
    """`fit` runs it where it is proven, and by consent where it is not; an audit attacks it as any other."""
    (tmp_path / "schema.toml").write_text(
        '[label]\nname = "ill"\nkind = "binary"\nvalues = ["no", "yes"]\n'
        '[group]\nname = "site"\nvalues = ["a", "b"]\n[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 9\n'
    )
    rows = "".join(f"{k % 10},{'ab'[k % 2]},{'yes' if k % 10 > 4 else 'no'}\n" for k in range(40))
    (tmp_path / "data.csv").write_text("age,site,ill\n" + rows)

    def fit(name, *more):
        return CliRunner().invoke(app, [
            "fit", str(tmp_path / "data.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "5", "--rounds",
            "3", "--algorithm", name, "--set", "clip=1", "--out", str(tmp_path / f"{name}.json"), *more,
        ])  # fmt: skip

    proven = fit("Theirs", "--json")
    assert proven.exit_code == 0 and '"guarantee": "proven"' in proven.stdout, proven.output
    refused = fit("Loud")
    assert refused.exit_code == 2 and "--allow-unproven" in refused.stderr
    unknown = fit("Nobody")
    assert unknown.exit_code == 2 and "--algorithm 'Nobody': must be one of ADMM" in unknown.stderr
    audit = CliRunner().invoke(app, ["audit", "Theirs", "--loss", "logistic", "--rounds", "2", "--repetitions", "100",
                                     "--output", str(tmp_path / "audit"), "--json"])  # fmt: skip
    assert audit.exit_code == 0 and '"verdict"' in audit.stdout, audit.output
