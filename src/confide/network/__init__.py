"""Who talks to whom (Graph), and one round of messages in one process (neighbour_sum, all_sum, Links)."""

from typing import TYPE_CHECKING, Any

from confide.network.graph import Graph

if TYPE_CHECKING:
    from confide.network.exchange import Links, all_sum, neighbour_sum

__all__ = ["Graph", "Links", "all_sum", "neighbour_sum"]


def __getattr__(name: str) -> Any:
    # The exchange brings Numba, which takes longer to import than the rest of the package together.
    if name in __all__:
        from confide.network import exchange

        return getattr(exchange, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
