"""Responses are drawn once: repeating a question tells nothing new."""

import multiprocessing
import sqlite3

import numpy as np
import pytest
from scipy import stats

from confide.errors import ConfideError
from confide.privacy.response import ResponseBook


def test_a_response_is_drawn_once_and_remembered(tmp_path):
    book = ResponseBook(tmp_path / "book.sqlite")
    book.choose("ann", "diabetes", 0.1)
    first = book.respond("ann", "diabetes", 1.0)
    assert all(book.respond("ann", "diabetes", 1.0) == first for _ in range(50))
    assert ResponseBook(tmp_path / "book.sqlite").respond("ann", "diabetes", -1.0) == first  # whatever is said later


def test_responses_follow_randomised_response(tmp_path):
    book = ResponseBook(tmp_path / "book.sqlite")
    for i in range(400):
        book.choose(str(i), "task", 1.0)
    kept = sum(book.respond(str(i), "task", 1.0) == 1.0 for i in range(400))
    assert stats.binomtest(kept, 400, np.e / (1 + np.e)).pvalue > 1e-6


def test_epsilon_comes_before_the_label_and_stays(tmp_path):
    book = ResponseBook(tmp_path / "book.sqlite")
    with pytest.raises(ValueError, match="before the label is read"):
        book.respond("ann", "task", 1.0)
    book.choose("ann", "task", 1.0)
    book.choose("ann", "task", 1.0)
    with pytest.raises(ValueError, match="was fixed at 1"):
        book.choose("ann", "task", 5.0)
    for bad in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="must be finite and above 0"):
            book.choose("bob", "task", bad)


def test_the_file_holds_neither_names_nor_true_labels(tmp_path):
    file = tmp_path / "book.sqlite"
    book = ResponseBook(file)
    book.choose("ann-of-green-gables", "task", 0.5, classes=7)
    book.respond("ann-of-green-gables", "task", 3.0)
    assert b"green-gables" not in file.read_bytes()
    with sqlite3.connect(file) as db, pytest.raises(sqlite3.DatabaseError, match="kept"):
        db.execute("UPDATE response SET label = 0")


def _ask(args):
    path, person = args
    return ResponseBook(path).respond(person, "task", 1.0)


def test_two_processes_get_the_same_answer(tmp_path):
    file = tmp_path / "book.sqlite"
    book = ResponseBook(file)
    people = [f"p{i}" for i in range(30)]
    for person in people:
        book.choose(person, "task", 0.1)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        answers = pool.map(_ask, [(file, person) for person in people for _ in range(4)], chunksize=1)
    assert all(len(set(answers[4 * i : 4 * i + 4])) == 1 for i in range(30))


def test_a_foreign_file_is_one_line(tmp_path):
    file = tmp_path / "text"
    file.write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(ValueError, match="not a book of responses"):
        ResponseBook(file)


def test_damage_is_one_line_and_never_a_second_draw(tmp_path):
    """Every flipped bit either changes nothing or is seen on opening; the same for a row that was taken out."""
    file, copy = tmp_path / "book.sqlite", tmp_path / "copy.sqlite"
    book = ResponseBook(file)
    for i in range(6):
        book.choose(str(i), "task", 0.1)
    given = {str(i): book.respond(str(i), "task", 1.0) for i in range(6)}
    sound, seen = file.read_bytes(), 0
    for bit in np.random.default_rng(0).choice(8 * len(sound), 400, replace=False):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(data)
        try:
            opened = ResponseBook(copy)
        except ConfideError as error:
            assert "damaged" in str(error) and str(copy) in str(error)
            seen += 1
            continue
        assert {person: opened.respond(person, "task", 1.0) for person in given} == given
        with sqlite3.connect(copy) as db:
            assert db.execute("SELECT count(*) FROM response").fetchone() == (6,)
    assert seen > 20
    copy.write_bytes(sound)
    with sqlite3.connect(copy) as db:
        with pytest.raises(sqlite3.DatabaseError, match="kept"):
            db.execute("DELETE FROM response")
        db.execute("DROP TRIGGER hold_response")
        db.execute("DELETE FROM response")
    with pytest.raises(ConfideError, match="6 rows are not the 12 that were written"):
        ResponseBook(copy)


def test_a_book_of_the_first_version_is_sealed_when_it_is_opened(tmp_path):
    file = tmp_path / "book.sqlite"
    book = ResponseBook(file)
    book.choose("ann", "task", 0.1)
    given = book.respond("ann", "task", 1.0)
    with sqlite3.connect(file) as db:  # as 0.1.0 wrote it
        db.executescript(
            "DROP TABLE seal; DROP TRIGGER hold_choice; DROP TRIGGER hold_response; PRAGMA user_version = 0"
        )
    assert ResponseBook(file).respond("ann", "task", -1.0) == given
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT rows FROM seal").fetchone() == (2,)
        db.execute("DROP TABLE seal")
    with pytest.raises(ConfideError, match="its seal is missing"):
        ResponseBook(file)


def test_a_name_that_looks_like_another_draws_no_second_answer(tmp_path):
    book = ResponseBook(tmp_path / "book.sqlite")
    book.choose("Zoë", "smoking", 1.0)
    for person, task in (("Zoe\u0308", "smoking"), (" Zoë", "smoking"), ("Zoë", "smoking ")):
        with pytest.raises(ConfideError, match="form NFC"):
            book.choose(person, task, 1.0)
        with pytest.raises(ConfideError, match="choose an epsilon"):
            book.respond(person, task, 1.0)
