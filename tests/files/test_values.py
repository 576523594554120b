"""Numbers and texts that nothing could hold are one line, wherever they stand."""

import pytest

from confide.errors import ConfideError
from confide.files.values import check_values


@pytest.mark.parametrize("document, said", [
    ({"timeout": 10**400}, r"^timeout: a whole number beyond 1.8e\+308"),
    ({"a": {"b": [1.0, [-(16**9999)]]}}, "^a.b: a whole number beyond"),  # more digits than Python would print
    ({"without": ["ash", "\ud800"]}, r"^without: '\\ud800': must be a text in Unicode"),
    ({"a": {"\udfff": 1}}, r"^a: '\\udfff': must be a text in Unicode"),
    ("\ud800" * 1000, r"a name: '(\\ud800){50}': must"),
])  # fmt: skip
def test_what_nothing_could_hold_is_named_with_its_place(document, said):
    with pytest.raises(ConfideError, match=said):
        check_values(document)


def test_all_else_passes_however_deep():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    check_values({"a": [2**1023, -1.7e308, float("inf"), float("nan"), True, None, "å\U0001f333\0"], "b": deep}, "file")
