"""What is paid for is what is asked: no round may ask otherwise than it did when it was priced."""

from __future__ import annotations

from collections.abc import Hashable

from confide.algorithms.base import Algorithm, at_home
from confide.algorithms.gaussian import GaussianMethod
from confide.errors import ConfideError
from confide.problem.problem import Public


class Priced:
    """The question of every round, how far a row moves its answer and how loud its noise is, as when it was priced.

    A class outside this package names its questions, and may find their bounds in what earlier rounds have told it and
    it keeps elsewhere: then rows would answer what nobody has paid for. Our own methods are functions of t, their
    parameters and the public problem.
    """

    def __init__(self, method: Algorithm, public: Public) -> None:
        self._method, self._public = method, public
        watched = isinstance(method, GaussianMethod) and not at_home(type(method)) and method.private(public)
        self._terms = [self._now(t) for t in range(1, method.rounds + 1)] if watched else []

    def check(self, t: int) -> None:
        """One line unless round t asks what it was priced for."""
        if self._terms and self._now(t) != self._terms[t - 1]:
            raise ConfideError(
                f"round {t}: {self._method.name} asks otherwise than when it was priced: its question and noise must "
                "follow from the round, its parameters and the public problem alone"
            )

    def _now(self, t: int) -> Hashable:
        method, public = self._method, self._public
        assert isinstance(method, GaussianMethod)
        moved, loud = method.sensitivity(t, public), method.noise_scale(t, public)
        return type(method.question(t, public)), method.asks(t), moved.tobytes(), loud.tobytes()
