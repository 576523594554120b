"""The papers' data: read from a user's own copy or downloaded, checked; Adult encoded with published ranges."""

import gzip
import hashlib
import io
import json
import os
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.io import savemat

from confide.papers import datasets

LINE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, "
)
DATA = f"{LINE}<=50K\n{LINE}>50K\n{LINE.replace('State-gov', '?')}<=50K\n\n"
TEST = f"|1x3 Cross validator\n{LINE}>50K.\n\n"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A folder with two tiny files that pass for UCI's."""
    (tmp_path / "adult.data").write_text(DATA)
    (tmp_path / "adult.test.gz").write_bytes(gzip.compress(TEST.encode()))
    hashes = {"adult.data": DATA, "adult.test": TEST}
    monkeypatch.setattr(
        datasets, "ADULT_SHA256", {n: hashlib.sha256(t.encode()).hexdigest() for n, t in hashes.items()}
    )
    return tmp_path


def test_complete_rows_are_encoded_without_looking_at_others(copy):
    X, y = datasets.load_adult(copy)
    assert X.shape == (3, 104) and y.tolist() == [-1.0, 1.0, 1.0]
    row = dict(zip(datasets.ADULT_FEATURES, X.toarray()[0], strict=True))
    norm = np.sqrt(8 + 0.39**2 + (77516 / 1.5e6) ** 2 + (13 / 16) ** 2 + 0.02174**2 + 0.4**2)
    assert row["age"] == pytest.approx(0.39 / norm) and row["workclass=State-gov"] == pytest.approx(1 / norm)
    assert np.all(X.multiply(X).sum(axis=1) <= 1 + 1e-12)


def test_the_folder_may_come_from_the_environment(copy, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(copy))
    assert datasets.load_adult()[0].shape == (3, 104)
    whole = datasets.load_adult(every_category=True)[0]
    assert whole.shape == (3, 105) and whole[:, 104].sum() == 0  # nobody who never worked has a complete row


def test_another_file_is_refused(copy):
    (copy / "adult.data").write_text(DATA + "\n")
    with pytest.raises(ValueError, match="its SHA-256 is not that of UCI's file"):
        datasets.load_adult(copy)
    packed = (copy / "adult.test.gz").read_bytes()
    (copy / "adult.data").write_text(DATA)
    (copy / "adult.test.gz").write_bytes(packed[:-12])
    with pytest.raises(ValueError, match=r"adult.test.gz: damaged"):
        datasets.load_adult(copy)
    (copy / "adult.data").unlink()
    with pytest.raises(FileNotFoundError, match=r"holds neither adult.data nor adult.data.gz"):
        datasets.load_adult(copy)


# --- the real ones, as read and as downloaded from a server that has them in the public layout ---------------------

REAL = Path(os.environ["CONFIDE_DATA"]) if "CONFIDE_DATA" in os.environ else None
needs_data = pytest.mark.skipif(REAL is None, reason="no data: neither CONFIDE_DATA nor ../shared/data")
RAETSCH = {  # rows, columns, +1, rows as distributed (Rätsch, Onoda and Müller 2001; usual counts without repetition)
    "banana": (5300, 2, 2376, 5300), "german": (1000, 20, 300, 1000), "image": (2086, 18, 1188, 2310),
    "ringnorm": (7400, 20, 3664, 7400), "splice": (2991, 60, 1344, 3175), "twonorm": (7400, 20, 3703, 7400),
    "waveform": (5000, 21, 1647, 5000),
}  # fmt: skip


@needs_data
def test_the_real_adult():
    X, y = datasets.load_adult()
    assert X.shape == (45222, 104) and np.sum(y > 0) == 11208


@needs_data
@pytest.mark.parametrize("name", RAETSCH)
def test_the_real_raetsch_sets(name):
    one = datasets.load_raetsch(name)
    rows, columns, positive, distributed = RAETSCH[name]
    assert one.X.shape == (rows, columns) and np.sum(one.y == 1) == positive and set(one.y) == {-1.0, 1.0}
    assert one.multiplicity.sum() == distributed and len(np.unique(np.column_stack([one.X, one.y]), axis=0)) == rows
    full = np.repeat(one.X, one.multiplicity, axis=0)
    if name != "splice":  # integer codes; all others come standardised
        assert np.allclose(full.mean(axis=0), 0, atol=1e-6) and np.allclose(full.std(axis=0, ddof=1), 1, atol=1e-3)


@needs_data
def test_the_real_tecator():
    meat = datasets.load_tecator()
    assert meat.X.shape == (240, 100) and (meat.fat.min(), meat.fat.max()) == (0.9, 58.5)
    assert np.sum(np.isin(meat.part, ["C", "M", "T"])) == 215 and np.all(meat.moisture + meat.fat + meat.protein < 105)


def test_an_unknown_set_is_one_line():
    with pytest.raises(ValueError, match="unknown set 'iris': known are banana, german"):
        datasets.load_raetsch("iris")
    with pytest.raises(ValueError, match="unknown data 'iris': known are adult, raetsch, tecator"):
        datasets.absent("iris")


class Home:
    """An HTTP server: path -> bytes; what was asked for is in `asked`."""

    def __init__(self):
        self.files, self.asked = {}, []
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                home.asked.append(self.path)
                content = home.files.get(self.path)
                self.send_response(200 if content is not None else 404)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Every public address leads to a server of this test; nothing is on this machine, and the cache is empty."""
    home = Home()
    monkeypatch.setattr(datasets, "ADULT_HOME", f"{home.address}/static/public/2/adult.zip")
    monkeypatch.setattr(datasets, "RAETSCH_HOME", f"{home.address}/benchmarks.mat")
    monkeypatch.setattr(datasets, "TECATOR_HOME", f"{home.address}/api/v1/json/data/505")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CONFIDE_DATA", raising=False)
    yield home
    home.server.shutdown()
    home.server.server_close()
    home.thread.join()


def cached_files(tmp_path):
    root = tmp_path / "cache" / "confide"
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@needs_data
def test_adult_is_downloaded_once(home, tmp_path):
    texts = {name: gzip.decompress((REAL / "adult" / f"{name}.gz").read_bytes()) for name in datasets.ADULT_SHA256}
    home.files["/static/public/2/adult.zip"] = zipped({"Index": b"", "adult.names": b"", **texts})
    assert datasets.absent("adult").startswith("adult (adult.data, adult.test) is neither")
    X, _ = datasets.load_adult()
    assert X.shape == (45222, 104) and cached_files(tmp_path) == ["adult/adult.data", "adult/adult.test"]
    assert datasets.load_adult()[0].shape == X.shape and len(home.asked) == 1 and datasets.absent("adult") is None


def benchmarks(change=lambda name, X: X):
    """benchmarks.mat as published: one struct a set, distinct rows in an order of its own, indices from 1."""
    sets = {}
    for name, (rows, *_) in RAETSCH.items():
        with np.load(REAL / "raetsch" / f"{name}.npz") as file:
            arrays = dict(file)
        order = np.random.default_rng(len(name)).permutation(rows)  # row `order[k]` is the file's row k
        where = np.argsort(order)
        if "train_idx" not in arrays:
            every = np.repeat(np.arange(rows), arrays["multiplicity"])[None]
            arrays["train_idx"], arrays["test_idx"] = every[:, :1000], every[:, 1000:]
        sets[name] = {"x": change(name, arrays["X"][order]), "t": arrays["y"][order, None].astype(float),
                      "train": where[arrays["train_idx"]] + 1, "test": where[arrays["test_idx"]] + 1}  # fmt: skip
    buffer = io.BytesIO()
    savemat(buffer, {**sets, "heart": {"x": np.zeros((3, 2))}}, do_compression=True)
    return buffer.getvalue()


@needs_data
def test_raetsch_is_downloaded_once(home, tmp_path):
    home.files["/benchmarks.mat"] = benchmarks()
    german = datasets.load_raetsch("german")
    assert cached_files(tmp_path) == sorted(f"raetsch/{name}.npz" for name in RAETSCH)
    for name, (*_, distributed) in RAETSCH.items():
        one, mine = datasets.load_raetsch(name), datasets.load_raetsch(name, REAL)
        assert one.multiplicity.sum() == distributed and one.X.shape == mine.X.shape
        for k in range(len(mine.train_idx)):  # the realisations have the same rows in the same order
            assert np.array_equal(one.X[one.train_idx[k]], mine.X[mine.train_idx[k]])
            assert np.array_equal(one.y[one.test_idx[k]], mine.y[mine.test_idx[k]])
    assert home.asked == ["/benchmarks.mat"] and np.array_equal(german.X, datasets.load_raetsch("german").X)


def arff(table, names):
    lines = ["% comment", "@RELATION tecator", *(f"@ATTRIBUTE {name} REAL" for name in names), "@DATA"]
    return "\n".join([*lines, *(",".join(map(str, row)) for row in table)]).encode() + b"\n"


def published(home, table):
    """OpenML's description and file: 100 absorbances, 22 principal components, moisture, fat, protein."""
    names = [f"absorbance_{k}" for k in range(1, 101)] + [f"principal_component_{k}" for k in range(1, 23)]
    home.files["/tecator.arff"] = arff(table, [*names, "moisture", "fat", "protein"])
    where = {"data_set_description": {"id": "505", "name": "tecator", "url": f"{home.address}/tecator.arff"}}
    home.files["/api/v1/json/data/505"] = json.dumps(where).encode()


def spectra():
    meat = datasets.load_tecator(REAL)
    return np.column_stack([meat.X, np.zeros((240, 22)), meat.moisture, meat.fat, meat.protein])


@needs_data
def test_tecator_is_downloaded_once(home, tmp_path):
    published(home, spectra())
    meat, mine = datasets.load_tecator(), datasets.load_tecator(REAL)
    again = datasets.load_tecator()
    for one in (meat, again):
        assert all(np.array_equal(a, b) for a, b in zip(one, mine, strict=True))
    assert len(home.asked) == 2 and cached_files(tmp_path) == ["tecator/tecator.csv"]


@needs_data
def test_wrong_downloads_are_one_line_and_nothing_is_kept(home, tmp_path):
    table = spectra()
    table[5, 7] += 1e-4
    published(home, table)
    texts = {name: gzip.decompress((REAL / "adult" / f"{name}.gz").read_bytes()) for name in datasets.ADULT_SHA256}
    for name, content, load, said in (
        ("/tecator.arff", None, datasets.load_tecator, "not the Tecator spectra"),
        ("/api/v1/json/data/505", b"<html>", datasets.load_tecator, "does not say where the data is"),
        ("/api/v1/json/data/505", b'{"data_set_description": {"url": "file:///etc/passwd"}}', datasets.load_tecator,
         "no web address"),
        ("/static/public/2/adult.zip", zipped({**texts, "adult.data": texts["adult.data"] + b"x"}), datasets.load_adult,
         "its SHA-256 is not that"),
        ("/static/public/2/adult.zip", b"<html>", datasets.load_adult, "not an archive"),
        ("/benchmarks.mat", b"<html>", lambda: datasets.load_raetsch("german"), "not a .mat file"),
        ("/benchmarks.mat", benchmarks(lambda n, X: X + 1e-3 * (n == "waveform")),
         lambda: datasets.load_raetsch("german"), "waveform from .* its rows are not those"),
    ):  # fmt: skip
        if content is not None:
            home.files[name] = content
        with pytest.raises(ValueError, match=said) as caught:
            load()
        assert "\n" not in str(caught.value) and cached_files(tmp_path) == []


def test_no_network_is_one_line(home, tmp_path):
    for load in (datasets.load_adult, datasets.load_tecator, lambda: datasets.load_raetsch("banana")):
        with pytest.raises(OSError, match=r"could not be downloaded from http.*Not Found.*CONFIDE_DATA") as caught:
            load()
        assert "\n" not in str(caught.value) and cached_files(tmp_path) == []
    home.server.shutdown()
    home.server.server_close()
    with pytest.raises(OSError, match=r"could not be downloaded.*refused"):
        datasets.load_tecator()


@needs_data
def test_a_damaged_copy_is_one_line(tmp_path):
    (tmp_path / "german.npz").write_bytes(b"PK damaged")
    (tmp_path / "tecator.csv").write_text("set,fat\nC,1\n")
    with pytest.raises(ValueError, match=r"german.npz: not an .npz file"):
        datasets.load_raetsch("german", tmp_path)
    with pytest.raises(ValueError, match="not the Tecator spectra"):
        datasets.load_tecator(tmp_path)
    (tmp_path / "tecator.csv").write_text("")
    with pytest.raises(ValueError, match="not the Tecator spectra"):
        datasets.load_tecator(tmp_path)
    with np.load(REAL / "raetsch" / "german.npz") as file:
        arrays = dict(file)
    arrays["train_idx"][0, 0] = arrays["train_idx"][0, 1]
    np.savez(tmp_path / "german.npz", **arrays)
    with pytest.raises(ValueError, match="a realisation does not have every row"):
        datasets.load_raetsch("german", tmp_path)
