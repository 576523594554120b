"""One family of errors: what our own checks say, in one line, to somebody who gave us something that we can't use.

A line says what was given, then what is allowed, then what to do: `epsilon=-1: must be above 0`. Anything else that is
raised is a bug of ours: the command line shows its traceback and asks for a report.
"""

from __future__ import annotations

import errno


class ConfideError(ValueError):
    """What was given can't be used; the message is one line that says what is allowed."""


class WrongType(ConfideError, TypeError):
    """What was given is of another kind than what is needed."""


class NotFinite(ConfideError):
    """Among rows, targets or what travels with them is NaN or infinity."""


class Diverged(ConfideError, FloatingPointError):
    """Numbers grew beyond all bounds, or a solver found no answer, for the parameters given."""


class MissingExtra(ConfideError, ImportError):
    """A part of the software that is installed on demand is not here; the message has the command."""


# The machine's own troubles come without the name of a file: a full disk or quota, one that fails or can't be written.
MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE})

# What is installed on demand, and the extra that brings it.
EXTRAS = {
    "matplotlib": "plot", "dp_accounting": "accounting", "cryptography": "secure", "opendp": "opendp",
    "sklearn": "sklearn", "pyarrow": "parquet", "joblib": "reproduce", "threadpoolctl": "reproduce",
}  # fmt: skip


def expected(error: BaseException) -> bool:
    """Whether one line says all: our own checks, a file that can't be used, an extra that is not installed, or trouble
    of the machine; no bug of ours.

    An OSError without a number is one that we raised, with words of our own.
    """
    if isinstance(error, ImportError) and _absent(error) in EXTRAS:
        return True
    if isinstance(error, OSError) and not isinstance(error, ConfideError):
        return error.filename is not None or error.errno is None or error.errno in MACHINE
    return isinstance(error, ConfideError)


def describe(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ImportError) and (absent := _absent(error)) in EXTRAS and not isinstance(error, ConfideError):
        return f"this needs {absent}, which is not installed: pip install 'confide[{EXTRAS[absent]}]'"
    return " ".join(str(error).split()) or type(error).__name__


def _absent(error: ImportError) -> str:
    return (error.name or "").partition(".")[0]
