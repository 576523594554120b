"""The federation file: one hash for one agreement, one line for every mistake; and the commands around it."""

import copy
import json
import tomllib

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from typer.testing import CliRunner
from village import NAMES, Village

from confide.cli import app
from confide.errors import ConfideError
from confide.files.toml import dumps
from confide.network.identity import Card, self_signed
from confide.node import federation as federations
from confide.node.calibration import calibrated
from confide.node.purse import Purse
from confide.node.rows import read_block

CDP = {"name": "CDPADMM", "rounds": 10, "coupling": 0.2, "clip": 0.5, "noise": 3.0}


@pytest.fixture(scope="module")
def village(tmp_path_factory):
    return Village(tmp_path_factory.mktemp("village"), CDP, seed=None)


def changed(village, path, value):
    document = copy.deepcopy(village.document)
    *where, last = path
    table = document
    for key in where:
        table = table[key]
    if value is None:
        del table[last]
    else:
        table[last] = value
    return document


def test_layout_and_comments_do_not_change_the_hash_and_everything_else_does(village):
    text = dumps(village.document)
    assert tomllib.loads(text) == village.document
    again = federations.from_document(tomllib.loads("# ours\n" + text.replace(" = ", "   =  ")))
    assert again.digest == village.federation.digest
    shuffled = dict(reversed(village.document.items()))
    assert federations.from_document(shuffled).digest == village.federation.digest
    others = [
        (("run",), "1"), (("timeout",), 61.0), (("algorithm", "noise"), 3.1), (("members", 0, "rows"), 13),
        (("budget", "epsilon"), 1.1), (("model", "row_norm"), 1.5), (("test_noise_seed",), 1),
    ]  # fmt: skip
    digests = {federations.from_document(changed(village, *other)).digest for other in others}
    assert len(digests | {village.federation.digest}) == len(others) + 1


def test_agents_are_numbered_as_the_members_stand(village):
    f = village.federation
    assert f.parties == NAMES and f.public.sizes.tolist() == [12, 40, 25, 60, 33]
    assert set(f.neighbours("ash")) == {"birch", "elm"}
    assert f.guarantee.label == "proven"
    with pytest.raises(ValueError, match="not a member"):
        f.neighbours("stranger")


def test_seeded_noise_guarantees_nothing(village):
    f = federations.from_document(changed(village, ("test_noise_seed",), 7))
    assert f.guarantee.label == "none" and "protects nobody" in f.guarantee.reason
    assert not Purse(f, 0, "people").protects


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("format",), 3, "format 3"), (("format",), True, "format True"), (("name",), "", "name=''"),
        (("bogus",), 1, "unknown field bogus"),
        (("timeout",), 0, "timeout=0"), (("timeout",), True, "timeout=True"), (("graph",), None, "no field graph"),
        (("test_noise_seed",), -1, "test_noise_seed=-1"), (("model", "loss"), {"name": "Nosuch"}, "unknown name"),
        (("model", "loss"), {"name": "Huber", "depth": 1}, "loss.depth"), (("model", "loss"), "x", "a table"),
        (("model", "penalty", "strength"), -1, "strength"), (("model", "weighting"), "x", "weighting"),
        (("model", "features"), 0, "features=0"), (("model", "intercept"), 1, "intercept=1"),
        (("model", "row_norm"), -1.0, "row_norm"), (("algorithm",), {"name": "ORZO"}, "pools all rows"),
        (("algorithm", "name"), "DPADMM", "needs a hub"), (("algorithm", "nosuch"), 1, "algorithm.nosuch"),
        (("algorithm", "rounds"), 0, "rounds=0"), (("algorithm", "noise"), [1.0, 2.0], "one per agent"),
        (("budget", "epsilon"), -1, "budget.epsilon"), (("budget", "delta"), 1.0, "budget.delta"),
        (("budget",), None, "needs a cap"), (("graph", "edges"), [["ash", "x"]], "must be a pair"),
        (("graph", "edges"), [["ash", "birch"]], "disconnected"), (("graph", "hub"), "ash", "holds no rows"),
        (("graph", "edges"), [["ash", "ash"]], "self loop"), (("members",), [], "0 party"),
        (("members", 0, "rows"), 0, "rows=0"), (("members", 0, "rows"), None, "rows=None"),
        (("members", 0, "fingerprint"), "00", "not that of its cert"), (("members", 0, "name"), "birch", "names"),
        (("members", 0, "certificate"), "!!", "damaged"), (("members", 0, "address"), "x", "host:port"),
        (("model", "penalty", "strength"), float("nan"), "finite"), (("graph", "edges"), 5, "a list of edges"),
        (("graph", "edges"), [[["ash"], "birch"]], "must be a pair"), (("graph", "hub"), ["ash"], "a name as its hub"),
    ],
)  # fmt: skip
def test_every_mistake_is_one_line(village, path, value, words, tmp_path):
    file = tmp_path / "federation.toml"
    file.write_text(dumps(changed(village, path, value)))
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as error:
        federations.load(file)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(file))


def test_a_number_that_no_float_holds_is_one_line(village, tmp_path):
    for digits in ("1" + "0" * 400, "0x1" + "0" * 9000):
        file = tmp_path / "federation.toml"
        file.write_text(dumps(village.document).replace("timeout = 300.0", f"timeout = {digits}"))
        with pytest.raises(ConfideError, match=r"federation.toml: timeout: a whole number beyond 1.8e\+308"):
            federations.load(file)


# --- commands ---------------------------------------------------------------------------------------------------------


def confide(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def homes(tmp_path):
    for number, name in enumerate((*NAMES[:3], "hub")):
        listen = f"127.0.0.1:{7000 + number}"
        out = confide("node", "init", "--name", name, "--listen", listen, "--home", tmp_path / name)
        assert out.exit_code == 0 and f'name = "{name}"' in out.stdout and "fingerprint" in out.stdout
    return tmp_path


def parties(homes):
    return [x for name in NAMES[:3] for x in ("--party", f"{homes / name / 'card.toml'}=100")]


def test_the_former_name_of_coupling_is_understood(homes):
    file = homes / "federation.toml"
    out = confide("federation", "new", *parties(homes), "--epsilon", 1, "--features", 4, "--algorithm", "CDPADMM",
                  "--set", "rounds=20", "--set", "clip=1", "--set", "step=5", "--set", "penalty=0.02", "--output",
                  file)  # fmt: skip
    assert out.exit_code == 0, out.output
    assert "warning: --set penalty: is called coupling now" in out.stderr
    assert federations.load(file).algorithm.coupling == 0.02
    assert "penalty" not in tomllib.loads(file.read_text())["algorithm"]


def test_a_new_federation_spends_its_cap_and_no_more(homes):
    file = homes / "federation.toml"
    out = confide("federation", "new", *parties(homes), "--epsilon", 1, "--features", 4, "--algorithm",
                  "CDPADMM", "--set", "rounds=20", "--set", "clip=1.0", "--output", file, "--json")  # fmt: skip
    assert out.exit_code == 0, out.output
    f = federations.load(file)
    said = json.loads(out.stdout)
    assert said["hash"] == f.digest.hex() and said["guarantee"].startswith("proven")
    purse = Purse(f, 0, "people", homes / "ledger.sqlite")
    purse.open("run", [], homes)  # fits, as the secure sampler charges it
    for t in range(1, 21):
        purse.pay(t)
    assert f.restarts == 1 and purse.spent() < 0.97
    assert purse.pay(20) == 2  # once more, as after a crash: what was held for it
    assert 0.999 < purse.spent() <= 1.0
    purse.close()
    assert "exists" in confide("federation", "new", *parties(homes), "--epsilon", 1, "--features", 4,
                               "--output", file).output  # fmt: skip


SCHEMA = """
[label]
name = "flu"
kind = "binary"
values = ["no", "yes"]
[columns.job]
kind = "category"
categories = ["cook", "nurse"]
[columns.age]
kind = "numeric"
low = 0
high = 100
"""


def test_a_schema_says_how_rows_are_read(homes):
    """The order of its columns is the order of the features, so it belongs to the hash; errors show no value."""
    file = homes / "federation.toml"
    (homes / "schema.toml").write_text(SCHEMA)
    out = confide("federation", "new", *parties(homes), "--schema", homes / "schema.toml", "--epsilon", 1,
                  "--output", file)  # fmt: skip
    assert out.exit_code == 0, out.output
    assert max(len(line) for line in out.stdout.splitlines() if str(file) not in line) <= 80
    f = federations.load(file)
    assert f.features == 3 and f.intercept and f.row_norm == 1.0
    table = tomllib.loads(file.read_text())
    columns = table["schema"]["columns"]
    table["schema"]["columns"] = {name: columns[name] for name in ("age", "job")}
    assert federations.from_document(table).digest != f.digest
    data = homes / "ash.csv"
    lines = ["job,age,flu", *["cook,50,yes", "nurse,20,no"] * 50]
    data.write_text("\n".join(lines) + "\n")
    block = read_block(data, f, 0, homes / "rows", training=False)
    assert block.shards.X.shape == (100, 3) and set(block.shards.y) == {-1.0, 1.0}
    data.write_text("\n".join([*lines[:-1], "secret,20,no"]) + "\n")
    with pytest.raises(ValueError, match="line 101, column 'job'") as error:
        read_block(data, f, 0, homes / "rows", training=False)
    assert "secret" not in str(error.value)
    block = read_block(data, f, 0, homes / "rows", training=True)  # now it counts as the fixed public row
    assert np.array_equal(block.shards.X[-1], np.zeros(3)) and block.shards.y[-1] == -1.0


def test_a_federation_with_a_hub(homes):
    file = homes / "federation.toml"
    out = confide("federation", "new", *parties(homes), "--hub", homes / "hub" / "card.toml", "--epsilon", 2,
                  "--features", 4, "--algorithm", "DPADMM", "--set", "clip=1.0", "--output", file)  # fmt: skip
    assert out.exit_code == 0, out.output
    f = federations.load(file)
    assert f.hub == "hub" and set(f.neighbours("hub")) == set(NAMES[:3]) and set(f.neighbours("ash")) == {"hub"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["federation", "new", "--party", "x", "--epsilon", "1", "--features", "4"], "must be CARD=ROWS"),
        (["federation", "new", "--party", "nosuch.toml=3", "--epsilon", "1", "--features", "4"], "nosuch.toml"),
        (["federation", "new", "--party", "nosuch.toml=3", "--epsilon", "1"], "nosuch.toml"),
        (["node", "run", "--federation", "nosuch.toml"], "nosuch.toml"),
        (["node", "model", "--home", "nosuch"], "no run yet"),
        (["node", "init", "--name", "A", "--listen", "127.0.0.1:1"], "must be 1 to 63"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = confide(*arguments)
    assert out.exit_code == 2 and words in out.stderr and out.stderr.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_a_node_refuses_what_is_not_proven_unless_told(village):
    noisy = village.write("unproven.toml", changed(village, ("test_noise_seed",), 7))
    out = confide("node", "run", "--federation", noisy, "--home", village.folder / "ash", "--data", "x.npz")
    assert out.exit_code == 2 and "--allow-unproven" in out.stderr


def test_help_has_examples():
    for command in (["node", "init"], ["node", "run"], ["node", "status"], ["node", "model"], ["federation", "new"]):
        out = confide(*command, "--help")
        assert out.exit_code == 0 and f"Example: confide {' '.join(command)}" in out.stdout and "--json" in out.stdout


def test_a_wrong_name_of_rows_is_said_before_anybody_is_waited_for(village):
    given = ("--federation", village.write("right.toml", village.document), "--home", village.folder / "ash")
    out = confide("node", "run", *given, "--data", village.folder / "nosuch.csv", "--agree")
    assert (out.exit_code, out.stdout) == (2, "")
    assert out.stderr == f"confide: {village.folder / 'nosuch.csv'}: No such file or directory\n"


def test_status_without_a_run(tmp_path):
    out = confide("node", "status", "--home", tmp_path / "nosuch")
    assert out.exit_code == 2 and "no such folder; `confide node init` makes a node's" in out.stderr
    assert "no run yet" in confide("node", "status", "--home", tmp_path).stdout
    assert json.loads(confide("node", "status", "--home", tmp_path, "--json").stdout) == {"runs": []}


def test_toml_writes_what_it_reads():
    document = {"a": 1, "b": 1e-5, "c": 'ä"\n', "d": [1.5, -2.0], "t": {"x": {"y": "z"}, "ok": True}, "l": [{"n": 1}]}
    assert tomllib.loads(dumps(document)) == document
    with pytest.raises(TypeError, match="no form in TOML"):
        dumps({"a": np.float64})


@pytest.mark.parametrize(("decay", "restarts", "held"), [(1.0, None, 4), (0.97, None, 4), (0.97, 9, 9), (0.97, 0, 0)])
def test_the_cap_covers_every_round_and_the_restarts(village, decay, restarts, held):
    """By dp-accounting: all rounds and so many of the dearest again compose to the cap, and not much less."""
    from dp_accounting.pld import privacy_loss_distribution

    document = copy.deepcopy(village.document)
    document["algorithm"] = {"name": "CDPADMM", "rounds": 100, "coupling": 0.2, "clip": 0.5, "noise_decay": decay}
    given = federations.from_document(document)
    found = calibrated(document, given, restarts)
    assert found.restarts == held == Purse(found, 0, "people")._spare
    costs = []
    for k in range(5):
        mus = [float(event.mu) for now in found.prices(k) for event in now]
        total = np.sqrt(np.sum(np.square(mus)) + np.sum(np.square(sorted(mus)[100 - held :])))
        pld = privacy_loss_distribution.from_gaussian_mechanism(1 / total)
        costs.append(pld.get_epsilon_for_delta(1e-5))
    assert 0.995 < max(costs) < 1.001
    assert federations.from_document(tomllib.loads(dumps(document))).restarts == held


def test_noise_that_is_given_is_kept_and_holds_nothing_by_itself(village):
    document = copy.deepcopy(village.document)
    assert calibrated(document, village.federation).digest == village.federation.digest
    assert calibrated(document, village.federation, 2).restarts == 2 and document["algorithm"]["noise"] == 3.0


@pytest.mark.slow
def test_a_thousand_members_are_read_and_each_finds_its_neighbours(tmp_path):
    """A file of 0.7 MB, opened as any other."""
    import networkx as nx

    names = [f"n{k}" for k in range(1000)]
    key = ec.generate_private_key(ec.SECP256R1())
    made = [self_signed(key, name).public_bytes(serialization.Encoding.DER) for name in names]
    cards = [Card(name, f"127.0.0.1:{7000 + k}", made[k]) for k, name in enumerate(names)]
    drawn = nx.random_regular_graph(4, 1000, seed=1)
    village = Village(tmp_path / "village", CDP)
    document = {
        **village.document, "graph": {"edges": [[names[a], names[b]] for a, b in drawn.edges]},
        "members": [{**card.to_json(), "rows": 50} for card in cards],
    }  # fmt: skip
    federation = federations.load(village.write("thousand.toml", document))
    assert federation.cards == dict(zip(names, cards, strict=True)) and len(federation.edges) == 2000
    for k in (0, 500, 999):
        assert {*federation.neighbours(names[k])} == {names[l] for l in drawn[k]}
