"""One grammar of errors: what was given, then what is allowed, then what to do."""

import ast
import re
from pathlib import Path

import confide

FAMILY = {"ConfideError", "WrongType", "NotFinite", "Diverged", "MissingExtra"}
GIVEN_LAST = re.compile(r"(, |: )got\b|, given (?!by)|, but (is|was) |, (this one is|it has|gave) ")
NOT_GIVEN = re.compile(r"({}: )?(field )?[\w.'{}]*\w[\w.'{}]*: must ")  # a field, and at once what it must be
SECRET = {"network/dialling.py", "node/person.py", "node/records.py"}  # a password, what a person says: never shown


def messages(file: Path):
    """(line, text) of each message that a file raises; what is filled in stands as {}."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in FAMILY and call.args:
            parts = ast.walk(call.args[0]) if not isinstance(call.args[0], ast.JoinedStr) else call.args[0].values
            words = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
            yield node.lineno, "".join(str(word) for word in words)


def test_what_was_given_comes_first():
    home = Path(confide.__file__).parent
    found = [(file, line, text) for file in sorted(home.rglob("*.py")) for line, text in messages(file)]
    assert len(found) > 400
    turned = [f"{file.relative_to(home)}:{line}: {text}" for file, line, text in found if GIVEN_LAST.search(text)]
    assert not turned, "\n".join(turned)
    places = [(file.relative_to(home).as_posix(), line, text) for file, line, text in found]
    silent = [f"{file}:{line}: {text}" for file, line, text in places if NOT_GIVEN.match(text) and file not in SECRET]
    assert not silent, "\n".join(silent)


def test_the_rule_sees_a_message_that_is_turned_around():
    for text in ("a network needs 2 parties, got {}", "must be csr, given {}: use csr", "needs a graph: got None",
                 "low is for kind 'numeric', this one is {}"):  # fmt: skip
        assert GIVEN_LAST.search(text)
    for text in ("row_norm: must be above 0", "privacy.{}: must be a text", "{}: classes: must be different"):
        assert NOT_GIVEN.match(text)
    for text in ("row_norm={}: must be above 0", "an empty file: must have rows", "{}: not a model: must be JSON"):
        assert not NOT_GIVEN.match(text)
    for text in ("epsilon={}: must be above 0", "{}: given twice; give each once", "the algorithm given has its own"):
        assert not GIVEN_LAST.search(text)
