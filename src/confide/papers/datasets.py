"""The public data sets of the papers: UCI Adult, Rätsch's benchmarks, Tecator.

    X, y = confide.datasets.load_adult()
    german = confide.datasets.load_raetsch("german")          # X, y, train_idx, test_idx, multiplicity
    meat = confide.datasets.load_tecator()                    # X, moisture, fat, protein, part

Each is read from `data`, a folder, or from CONFIDE_DATA; what is not there is downloaded once from its public home and
kept in XDG_CACHE_HOME/confide. Every copy is checked: Adult by the SHA-256 of UCI's files, the others' downloads by
a SHA-256 of their content (rows rounded to six decimals), since their homes publish no checksum of the file.
Adult is encoded without looking at the data: ranges and categories are the published ones.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.papers.downloads import cached, download, held, keep

Array = NDArray[np.float64]
Places = NDArray[np.int64]

ADULT_HOME = "https://archive.ics.uci.edu/static/public/2/adult.zip"
ADULT_SHA256 = {  # of the decompressed text
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# The columns of adult.names. Numeric ones are divided by a round number above any value they can take; categories are
# those that a complete row can have (who never worked has no occupation).
_CATEGORIES = {
    "workclass": "Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters "
    "Preschool Prof-school Some-college",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated "
    "Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France "
    "Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan "
    "Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South "
    "Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
_BOUNDS = {
    "age": 100.0, "fnlwgt": 1.5e6, "education-num": 16.0, "capital-gain": 1e5, "capital-loss": 5e3,
    "hours-per-week": 100.0,
}  # fmt: skip
_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip

ADULT_FEATURES = tuple(
    name if name in _BOUNDS else f"{name}={category}"
    for name in _COLUMNS
    for category in _CATEGORIES.get(name, "one").split()
)


def load_adult(data: str | Path | None = None, *, every_category: bool = False) -> tuple[sp.csr_array, Array]:
    """The 45,222 complete rows of UCI Adult, adult.data first: X (45222, 104) with rows of norm at most 1, y = ±1.

    `every_category` has the 105 columns of adult.names' whole vocabulary, as the papers count them: the last one is
    workclass=Never-worked, which no complete row has. `data` is a folder with adult.data and adult.test, plain or
    gzipped, or whose folder "adult" has them.
    """
    rows = [row for name in ADULT_SHA256 for row in _complete(_adult(name, data))]
    values: list[float] = []
    places: list[int] = []
    starts = [0]
    for row in rows:
        _encode(row[:-1], values, places)
        starts.append(len(values))
    X = sp.csr_array((values, places, starts), shape=(len(rows), len(ADULT_FEATURES) + every_category))
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    y = np.array([1.0 if row[-1].startswith(">50K") else -1.0 for row in rows])
    return sp.csr_array(sp.diags_array(1 / np.maximum(norms, 1.0)) @ X), y


_PLACE = {name: place for place, name in enumerate(ADULT_FEATURES)}


def _encode(row: list[str], values: list[float], places: list[int]) -> None:
    for name, text in zip(_COLUMNS, row, strict=True):
        if name in _BOUNDS:
            values.append(min(max(float(text) / _BOUNDS[name], 0.0), 1.0))
            places.append(_PLACE[name])
        else:
            values.append(1.0)
            places.append(_PLACE[f"{name}={text}"])


def _complete(text: str) -> list[list[str]]:
    """Rows of 15 fields without '?'; adult.test has a comment first and a point after its labels."""
    rows = [line.split(", ") for line in text.splitlines()]
    return [row for row in rows if len(row) == len(_COLUMNS) + 1 and "?" not in row]


def _adult(name: str, data: str | Path | None) -> str:
    """The text of one file, checked against its published hash."""
    names = (name, f"{name}.gz")
    found = held("adult", names, data) or cached("adult", names)
    if found is None:
        archive = download(ADULT_HOME, "UCI Adult")
        for each in ADULT_SHA256:  # both, so that one download does
            keep("adult", each, _check(each, _unzip(archive, each), ADULT_HOME))
        found = cached("adult", names)
        assert found is not None
    content = found.read_bytes()
    try:
        content = gzip.decompress(content) if found.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error):
        raise ConfideError(f"{found}: damaged, or not compressed by gzip") from None
    return _check(name, content, found).decode("ascii")


def _check(name: str, content: bytes, where: Any) -> bytes:
    if hashlib.sha256(content).hexdigest() != ADULT_SHA256[name]:
        raise ConfideError(f"{name} from {where}: its SHA-256 is not that of UCI's file")
    return content


def _unzip(archive: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return files.read(name)
    except (zipfile.BadZipFile, KeyError):
        raise ConfideError(f"{ADULT_HOME}: not an archive with {name}") from None


# --- Rätsch's benchmarks ------------------------------------------------------------------------------------------

RAETSCH_HOME = "https://raw.githubusercontent.com/tdiethe/gunnar_raetsch_benchmark_datasets/master/benchmarks.mat"
RAETSCH_SHA256 = {  # of the content, see `fingerprint`
    "banana": "8fc500c8273995ebbad676411fc7b180dc495338e6abee14a5d231945b06d713",
    "german": "91e01e3d566bb7fcbac926e98d0c1ba391732a608f3a3b3853ffe35be506b742",
    "image": "5b0f229fa33c5abd5718424a5355153f0e27c3dfccbf44ef33c39c382d8c8a55",
    "ringnorm": "77440162565b9f6c8d436dc77aa0a7adae73afa692b1cf146ee7db0ba1cf8b54",
    "splice": "539a56c69bb059ab66cfa37db9a7347722873315ccb76dc8880facd08799daef",
    "twonorm": "66636a06178e624147bc51a9c8ce0d447ffd7a4c1b34fb953088ca586cd9b9ba",
    "waveform": "58eb120ef45056e3f28a58fd3802c7a0fc5b797d6ce226eb8d4db13b500bbd0f",
}


class Raetsch(NamedTuple):
    """One of Rätsch's sets: X (rows, features) and y, ±1.

    Rows that the original repeats are here once; `multiplicity` says how often they occur. `train_idx` and `test_idx`
    have one line per realisation, of places in X; how many realisations there are depends on the copy, and so does the
    order of the rows.
    """

    X: Array
    y: Array  # ±1
    train_idx: Places
    test_idx: Places
    multiplicity: Places


def load_raetsch(name: str, data: str | Path | None = None) -> Raetsch:
    """banana, german, image, ringnorm, splice, twonorm or waveform (Rätsch, Onoda and Müller 2001).

    `data` is a folder with NAME.npz, or whose folder "raetsch" has it.
    """
    if name not in RAETSCH_SHA256:
        raise ConfideError(f"unknown set {name!r}: known are {', '.join(RAETSCH_SHA256)}")
    file = f"{name}.npz"
    found = held("raetsch", [file], data) or cached("raetsch", [file])
    if found is not None:
        try:
            with np.load(found, allow_pickle=False) as arrays:
                one = _raetsch(dict(arrays))
        except (ValueError, KeyError, zipfile.BadZipFile, EOFError):
            raise ConfideError(f"{found}: not an .npz file with X and y, or damaged") from None
        return _same(name, one, found)
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        sets = loadmat(io.BytesIO(download(RAETSCH_HOME, "Rätsch's benchmarks")))
        every = {each: _distinct(sets[each][0, 0]) for each in RAETSCH_SHA256}
    except (MatReadError, ValueError, KeyError, IndexError, TypeError, NotImplementedError):
        raise ConfideError(f"{RAETSCH_HOME}: not a .mat file with the sets in it") from None
    for each, one in every.items():
        _same(each, one, RAETSCH_HOME)
    for each, one in every.items():
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **one._asdict())
        keep("raetsch", f"{each}.npz", buffer.getvalue())
    return every[name]


def _raetsch(arrays: dict[str, Any]) -> Raetsch:
    X, y = arrays["X"].astype(float), arrays["y"].astype(float)
    none = np.zeros((0, 0), np.int64)
    train, test = (arrays.get(k, none).astype(np.int64) for k in ("train_idx", "test_idx"))
    return Raetsch(X, y, train, test, arrays.get("multiplicity", np.ones(len(y))).astype(np.int64))


def _distinct(record: Any) -> Raetsch:
    """A struct with x, t, train and test (from 1): its rows once each, in the order of the first realisation."""
    X, y = np.asarray(record["x"], float), np.asarray(record["t"], float).ravel()
    train, test = (np.asarray(record[k], np.int64) - 1 for k in ("train", "test"))
    order = np.concatenate([train[0], test[0]])
    _, first, which, count = np.unique(np.column_stack([X, y])[order], axis=0, return_index=True, return_inverse=True,
                                       return_counts=True)  # fmt: skip
    rank = np.argsort(np.argsort(first))  # a distinct row's place among first occurrences
    place = np.full(len(y), -1)
    place[order] = rank[which.ravel()]
    rows, inverse = order[np.sort(first)], np.argsort(first)
    return Raetsch(X[rows], y[rows], place[train], place[test], count[inverse])


def _same(name: str, one: Raetsch, where: Any) -> Raetsch:
    """Rows with their repetitions are Rätsch's, and every realisation parts all of them."""
    if fingerprint(np.repeat(np.column_stack([one.X, one.y]), one.multiplicity, axis=0)) != RAETSCH_SHA256[name]:
        raise ConfideError(f"{name} from {where}: its rows are not those of Rätsch's set")
    for train, test in zip(one.train_idx, one.test_idx, strict=True):
        if not np.array_equal(np.bincount(np.concatenate([train, test]), minlength=len(one.y)), one.multiplicity):
            raise ConfideError(f"{name} from {where}: a realisation does not have every row")
    return one


def fingerprint(rows: Array, ordered: bool = False) -> str:
    """SHA-256 of rows of numbers, rounded to six decimals, in order of size unless `ordered` as they are."""
    whole = np.rint(rows * 1e6).astype("<i8")
    whole = whole if ordered else whole[np.lexsort(whole.T[::-1])]
    return hashlib.sha256(str(whole.shape).encode() + np.ascontiguousarray(whole).tobytes()).hexdigest()


# --- Tecator ------------------------------------------------------------------------------------------------------

TECATOR_HOME = "https://www.openml.org/api/v1/json/data/505"  # says where the ARFF file is
TECATOR_SHA256 = "4f6eb36f8a80248b04a0bab8bb889eeec650a6dcf393bda2b77dd77daf1a418b"  # of the content, in order
TECATOR_PARTS = {"C": 129, "M": 43, "T": 43, "E1": 8, "E2": 17}  # StatLib's order of the rows
_CONTENTS = ("moisture", "fat", "protein")
_TECATOR = tuple(f"absorbance_{k}" for k in range(1, 101)) + _CONTENTS


class Tecator(NamedTuple):
    """Spectra of 240 pieces of meat and what is in them. Please name Tecator AB where you use it (StatLib).

    X                         (240, 100): absorbance at 850 to 1050 nm
    moisture, fat, protein    (240,) each, per cent
    part                      C training, M monitoring, T testing: the classic 215; E1, E2 extrapolation
    """

    X: Array
    moisture: Array
    fat: Array
    protein: Array
    part: NDArray[np.str_]


def load_tecator(data: str | Path | None = None) -> Tecator:
    """The Tecator spectra (StatLib; OpenML 505). `data` is a folder with tecator.csv, or with a folder that has it."""
    found = held("tecator", ["tecator.csv"], data) or cached("tecator", ["tecator.csv"])
    if found is not None:
        table = list(csv.reader(found.read_text(encoding="utf-8", errors="replace").splitlines()))
        return _tecator(table[0] if table else [], table[1:], found)
    try:
        description = json.loads(download(TECATOR_HOME, "Tecator"))
        address = str(description["data_set_description"]["url"])
    except (ValueError, KeyError, TypeError):
        raise ConfideError(f"{TECATOR_HOME}: does not say where the data is") from None
    if not address.startswith(("http://", "https://")):
        raise ConfideError(f"{TECATOR_HOME}: names {address!r}, which is no web address")
    text = download(address, "Tecator").decode("utf-8", errors="replace")
    header = [line.split()[1].strip("'\"") for line in text.splitlines() if line.lower().startswith("@attribute ")]
    _, _, body = text.lower().partition("@data")
    meat = _tecator([name.lower() for name in header], list(csv.reader(body.strip().splitlines())), address)
    sheet = io.StringIO()
    rows = np.column_stack([meat.X, meat.moisture, meat.fat, meat.protein]).tolist()
    csv.writer(sheet).writerows([_TECATOR, *rows])
    keep("tecator", "tecator.csv", sheet.getvalue().encode())
    return meat


def _tecator(header: list[str], lines: list[list[str]], where: Any) -> Tecator:
    """The columns wanted out of a table, checked."""
    try:
        places = [header.index(name) for name in _TECATOR]
        table = np.array([[float(line[k]) for k in places] for line in lines])
        right = fingerprint(table, ordered=True) == TECATOR_SHA256
    except (ValueError, IndexError):
        right = False
    if not right:
        raise ConfideError(f"{where}: not the Tecator spectra")
    moisture, fat, protein = table[:, 100:].T
    part = np.repeat(list(TECATOR_PARTS), list(TECATOR_PARTS.values()))
    return Tecator(table[:, :100], moisture, fat, protein, part)


def absent(name: str) -> str | None:
    """Why "adult", "raetsch" or "tecator" can't be read here without a download; None if it can."""
    files: dict[str, list[tuple[str, ...]]] = {
        "adult": [("adult.data", "adult.data.gz"), ("adult.test", "adult.test.gz")],
        "raetsch": [(f"{each}.npz",) for each in RAETSCH_SHA256], "tecator": [("tecator.csv",)],
    }  # fmt: skip
    if name not in files:
        raise ConfideError(f"unknown data {name!r}: known are {', '.join(files)}")
    missing = [names[0] for names in files[name] if not (held(name, names, None) or cached(name, names))]
    if not missing:
        return None
    said = f"{name} ({', '.join(missing)}) is neither in CONFIDE_DATA nor in the cache"
    return f"{said}: give --data, or call confide.datasets.load_{name}, which downloads it"
