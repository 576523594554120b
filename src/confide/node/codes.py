"""Why a run ended, as a number that other programs can act on."""

from __future__ import annotations

from enum import IntEnum

from confide.errors import ConfideError, MissingExtra
from confide.privacy.chain import Damaged
from confide.privacy.ledger import BudgetExceeded


class Code(IntEnum):
    """What `confide node run` exits with. Who resumes a run may try again after a time-out or a full disk only."""

    FINISHED = 0
    REFUSED = 2  # an option, a file or a federation that can't be used as it is
    TIMEOUT = 3  # neighbours were silent for the federation's timeout
    BUDGET = 4
    MISBEHAVIOUR = 5  # a member signed two different messages for one round, or different members heard different sums
    DAMAGED = 6  # journal, ledger, memory, or the key and claims of a private sum: restore it
    SYSTEM = 7  # a full disk, no permission, a port in use


class Untrusted(ConfideError):
    """A run that two signatures ended."""


def code_of(error: BaseException) -> Code:
    """What a run that failed with this error exits with."""
    kinds = ((Untrusted, Code.MISBEHAVIOUR), (BudgetExceeded, Code.BUDGET), (Damaged, Code.DAMAGED),
             (OSError, Code.SYSTEM))  # fmt: skip
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | MissingExtra):
        return Code.REFUSED  # a name that was given
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.REFUSED)
