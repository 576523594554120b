"""Responses are drawn once: repeating a question tells nothing new."""

import multiprocessing
import sqlite3

import numpy as np
import pytest
from scipy import stats

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
