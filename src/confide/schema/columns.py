"""The fields of one column as numbers or codes, whether they come as a list of texts or as an Arrow array.

Texts are compared without the blanks around them, and "1.0" is "1": programs write whole numbers with a point as soon
as one is missing. Leading zeros stay ("007" is a code). A number is what `NUMBER` matches and nothing else, so that
every party reads the same file alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
POINT_ZERO = re.compile(r"([+-]?[0-9]+)\.0*")  # a whole number with a point


def text(value: Any) -> str:
    """A value of a record as a file would hold it."""
    if type(value) is str:  # first, because nearly all are
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
    return str(value).strip()


def number(field: str) -> float:
    """The field's number, NaN if it holds none."""
    return float(field) if NUMBER.fullmatch(field) else math.nan


def plain(field: str) -> str:
    """The field, without ".0" if it is a whole number: what two fields that mean one value have in common."""
    whole = POINT_ZERO.fullmatch(field)
    return whole.group(1) if whole else field


def texts(fields: Any) -> list[str]:
    """Fields of a batch, a list or an Arrow array, as texts that are the same where they mean the same."""
    return [plain(text(value)) for value in (fields if isinstance(fields, list) else fields.to_pylist())]


def numbers(fields: Any, marks: frozenset[str]) -> tuple[Array, Mask]:
    """Each field's number, NaN where it is none, infinite or missing, and which fields are missing.

    A mark that is a number, such as -9, marks that number however it is written.
    """
    if not isinstance(fields, list):
        return _arrow_numbers(fields, marks)
    texts = [text(v) for v in fields]
    missing = np.array([t in marks for t in texts], bool)
    return _marked(np.array([number(t) for t in texts], float), missing, marks)


def _marked(values: Array, missing: Mask, marks: frozenset[str]) -> tuple[Array, Mask]:
    """NaN for what is no finite number or missing; what equals a mark that is a number is missing."""
    missing = missing | np.isin(values, [number(m) for m in marks if NUMBER.fullmatch(m)])
    values[~np.isfinite(values) | missing] = np.nan
    return values, missing


def codes(fields: Any, allowed: tuple[str, ...], marks: frozenset[str]) -> tuple[Index, Mask]:
    """Each field's place in `allowed`, -1 where it has none, and which fields are missing."""
    if not isinstance(fields, list):
        return _arrow_codes(fields, allowed, marks)
    place, gone = {plain(value): i for i, value in enumerate(allowed)}, {plain(mark) for mark in marks}
    found = texts(fields)
    return np.array([place.get(t, -1) for t in found], np.int64), np.array([t in gone for t in found], bool)


# --- Arrow arrays -----------------------------------------------------------------------------------------------------


def _arrow_numbers(array: Any, marks: frozenset[str]) -> tuple[Array, Mask]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        fields = _text_array(array)
        if fields is None:  # dates, lists: no number
            return np.full(len(array), np.nan), np.asarray(pc.is_null(array))
        missing = pc.is_in(fields, value_set=_arrow_texts(sorted(marks)))
        fields = pc.if_else(missing, pa.scalar(None, fields.type), fields)
        try:
            array = pc.cast(fields, pa.float64())
        except pa.ArrowInvalid:  # something in it is no number
            return numbers(fields.to_pylist(), marks)
    values = np.array(pc.fill_null(pc.cast(array, pa.float64(), safe=False), math.nan), float)
    missing = np.array(pc.is_null(array), bool)
    if "nan" in marks:
        missing |= np.isnan(values)
    return _marked(values, missing, marks)


def _arrow_codes(array: Any, allowed: tuple[str, ...], marks: frozenset[str]) -> tuple[Index, Mask]:
    import pyarrow.compute as pc

    fields = _text_array(array)
    if fields is None:
        return np.full(len(array), -1, np.int64), np.asarray(pc.is_null(array))
    fields = pc.replace_substring_regex(fields, f"^{POINT_ZERO.pattern}$", r"\1")
    found = pc.index_in(fields, value_set=_plain_texts(allowed))
    missing = pc.is_in(fields, value_set=_plain_texts(tuple(sorted(marks))))
    return np.array(pc.fill_null(found, -1), np.int64), np.array(missing, bool)


@lru_cache(256)
def _plain_texts(values: tuple[str, ...]) -> Any:
    """Declared values as Arrow compares fields with them: the same for every batch of a file."""
    return _arrow_texts([plain(value) for value in values])


def _arrow_texts(values: Sequence[str]) -> Any:
    """An Arrow array of texts, from its bytes: `pyarrow.array` would load pandas, where it is installed."""
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _text_array(array: Any) -> Any:
    """An Arrow array of texts, as `text` writes them; None if its type has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.types
    if kind.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if kind.is_floating(array.type):  # 1.0 and 1 are the same
        return _arrow_texts([text(v) for v in array.to_pylist()])
    if not any(is_a(array.type) for is_a in (kind.is_string, kind.is_large_string, kind.is_string_view,
                                             kind.is_integer, kind.is_boolean, kind.is_decimal)):  # fmt: skip
        return None
    fields = pc.utf8_trim_whitespace(array.cast(pa.string()).cast(pa.large_string()))
    return pc.fill_null(fields, "")
