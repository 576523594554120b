"""The contracts that every method must keep, for methods from anywhere.

from confide.testing import check_algorithm
check_algorithm(MyMethod(rounds=6, clip=1.0, noise=0.1), quiet=MyMethod(rounds=2000))
"""

from confide.testing.contracts import CONTRACTS, BrokenContract, check_algorithm

__all__ = ["CONTRACTS", "BrokenContract", "check_algorithm"]
