"""Public data sets, encoded without looking at the data: ranges and categories are the published ones.

    X, y = confide.datasets.load_adult("path/to/adult")       # or CONFIDE_DATA, or downloaded from UCI
"""

from __future__ import annotations

import gzip
import hashlib
import os
import urllib.request
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

ADULT_HOME = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
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


def load_adult(path: str | Path | None = None) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """The 45,222 complete rows of UCI Adult, adult.data first: X (45222, 104) with rows of norm at most 1, y = ±1.

    `path` is a folder with adult.data and adult.test, plain or gzipped; without it CONFIDE_DATA (or its folder
    "adult"), and without that the files are downloaded. Their SHA-256 must be that of UCI's.
    """
    rows = [row for name in ADULT_SHA256 for row in _complete(_read(name, path))]
    values: list[float] = []
    places: list[int] = []
    starts = [0]
    for row in rows:
        _encode(row[:-1], values, places)
        starts.append(len(values))
    X = sp.csr_array((values, places, starts), shape=(len(rows), len(ADULT_FEATURES)))
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


def _read(name: str, path: str | Path | None) -> str:
    """The text of one file, checked against its published hash."""
    given = path if path is not None else os.environ.get("CONFIDE_DATA")
    if given is None:
        with urllib.request.urlopen(ADULT_HOME + name, timeout=60) as answer:
            content = answer.read()
    else:
        places = [Path(given) / sub / f for sub in (".", "adult") for f in (name, f"{name}.gz")]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise FileNotFoundError(f"{given}: holds neither {name} nor {name}.gz; get them from {ADULT_HOME}")
        content = found.read_bytes()
        content = gzip.decompress(content) if found.suffix == ".gz" else content
    if hashlib.sha256(content).hexdigest() != ADULT_SHA256[name]:
        raise ValueError(f"{name} from {given or ADULT_HOME}: its SHA-256 is not that of UCI's file")
    return content.decode("ascii")
