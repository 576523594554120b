"""What numbers of a fit may be, whatever its rows: `confide fit` refuses others before it reads any.

`given` is the value in the words of whoever gave it, such as `--evaluate 1.5`; by default those of an estimator.
"""

from __future__ import annotations

from typing import Any

from confide.errors import ConfideError
from confide.problem.checks import finite


def check_share(share: Any, given: str = "") -> None:
    """Of rows that are held out."""
    if not (finite(share) and 0 <= share < 1):
        raise ConfideError(f"{given or f'evaluate={share}'}: must be the share of rows held out, from 0 to below 1")


def check_strength(strength: Any, given: str = "") -> None:
    """Of the penalty."""
    if not (finite(strength) and strength >= 0):
        raise ConfideError(f"{given or f'penalty_strength={strength}'}: must be a finite number of at least 0")


def check_quantile(level: Any, given: str = "") -> None:
    """Which one is learned."""
    if not (finite(level) and 0 < level < 1):
        raise ConfideError(f"{given or f'quantile={level}'}: must lie strictly between 0 and 1")


def check_width(width: Any, given: str = "") -> None:
    """Where Huber's loss becomes linear."""
    if not (finite(width) and width > 0):
        raise ConfideError(f"{given or f'width={width}'}: must be a finite number above 0")
