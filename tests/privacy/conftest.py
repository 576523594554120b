"""Seeded words for the tests of secure noise."""

import numpy as np
import pytest

from confide.privacy import discrete_gaussian


@pytest.fixture
def seeded(monkeypatch):
    """seeded(seed) puts the discrete Gaussian on words that the seed decides, at most `most` of them at a time."""

    def start(seed, most=2**62):
        rng = np.random.default_rng(seed)
        draw = lambda count: rng.integers(2**32, size=min(count, most), dtype=np.uint32)  # noqa: E731
        monkeypatch.setattr(discrete_gaussian, "_entropy", draw)

    return start
