"""UCI Adult: read from a user's own copy, checked, and encoded with published ranges and categories."""

import gzip
import hashlib
import os

import numpy as np
import pytest

from confide import datasets

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


def test_another_file_is_refused(copy):
    (copy / "adult.data").write_text(DATA + "\n")
    with pytest.raises(ValueError, match="its SHA-256 is not that of UCI's file"):
        datasets.load_adult(copy)
    (copy / "adult.data").unlink()
    with pytest.raises(FileNotFoundError, match="holds neither"):
        datasets.load_adult(copy)


@pytest.mark.skipif("CONFIDE_DATA" not in os.environ, reason="no UCI Adult: neither CONFIDE_DATA nor ../shared/data")
def test_the_real_one():
    X, y = datasets.load_adult()
    assert X.shape == (45222, 104) and np.sum(y > 0) == 11208
