"""Who talks to whom (Graph), and one round of messages in one process (neighbour_sum, all_sum, Links)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.network.exchange import Links, all_sum, neighbour_sum
    from confide.network.graph import Graph

__all__ = ["Graph", "Links", "all_sum", "neighbour_sum"]


def __getattr__(name: str) -> Any:
    # A graph brings NumPy, and the exchange Numba, which takes longer to import than the rest of the package together.
    if name in __all__:
        return getattr(import_module(f"confide.network.{'graph' if name == 'Graph' else 'exchange'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
