"""Words on a terminal: 80 columns, a word that is longer (a path, a hash) on a line of its own, whole."""

from __future__ import annotations

from textwrap import fill

COLUMNS = 80


def folded(text: str, first: str = "", rest: str = "  ") -> str:
    """`text` on as many lines as it takes, which begin with `first` and then with `rest`."""
    return fill(text, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def more_than_useful(epsilon: float, delta: float) -> str:
    """What to say of an ε that secure noise can't spend; empty where it can."""
    from confide.privacy.secure import spendable

    if spendable(epsilon, delta):
        return ""
    return (
        f"ε={epsilon:g} is more than secure noise can spend at δ={delta:g}: no more is needed than what is said below"
    )
