"""What the theorems ask of their numbers, and the error where a condition can't be met."""

from __future__ import annotations

from confide.errors import ConfideError
from confide.problem import checks


class NotSatisfiable(ConfideError):
    """A theorem's condition that can't be met, with the number that says so."""


def positive(**values: float) -> None:
    for name, value in values.items():
        if not (checks.finite(value) and value > 0):
            raise ConfideError(f"{name}={value}: must be finite and above 0")


def whole(**values: int) -> None:
    for name, value in values.items():
        if not (checks.whole(value) and value >= 1):
            raise ConfideError(f"{name}={value}: must be a whole number of at least 1")


def probability(**values: float) -> None:
    for name, value in values.items():
        if not (checks.finite(value) and 0 < value < 1):
            raise ConfideError(f"{name}={value}: must lie strictly between 0 and 1")
