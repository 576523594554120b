"""What happens at the user before training: randomised response on labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def randomize_labels(labels: Any, epsilon: Any, classes: int = 2, *, seed: int | None = None) -> Array:
    """k-ary randomised response: each label kept with odds e^ε against each other class (Warner 1965; Kairouz 2016).

    Binary labels are -1 and 1, others 0..classes-1. `epsilon` is one number, or one a user, chosen before the label is
    read. ε-locally private for each label, once: draw once a person and keep the result, since a second draw costs ε
    again. `seed=None` takes the operating system's entropy; a seed is for simulations and protects nobody.
    """
    y = np.asarray(labels, float)
    eps = np.broadcast_to(np.asarray(epsilon, float), y.shape)
    if isinstance(classes, bool) or int(classes) != classes or classes < 2:
        raise ValueError(f"classes={classes}: must be a whole number of at least 2")
    if not (np.all(eps > 0) and np.all(np.isfinite(eps))):
        raise ValueError(f"epsilon={epsilon}: must be finite and above 0")
    allowed = np.array([-1.0, 1.0]) if classes == 2 else np.arange(float(classes))
    if not np.all(np.isin(y, allowed)):
        bad = y[~np.isin(y, allowed)].flat[0]
        raise ValueError(f"label {bad:g}: must be {'-1 or 1' if classes == 2 else f'0 to {classes - 1}'}")
    keep = np.exp(eps) / (np.exp(eps) + classes - 1)
    u, other = _draws(y.shape, classes, seed)
    index = np.searchsorted(allowed, y)
    moved = (index + 1 + other) % classes  # one of the other classes, uniformly
    return np.asarray(allowed[np.where(u < keep, index, moved)])


def _draws(shape: tuple[int, ...], classes: int, seed: int | None) -> tuple[Array, NDArray[np.int64]]:
    """A uniform number and one of the classes - 1 other classes for each label."""
    if seed is not None:
        rng = np.random.default_rng(seed)
        return rng.random(shape), rng.integers(0, classes - 1, shape)
    import secrets

    n = int(np.prod(shape))
    bits = np.frombuffer(secrets.token_bytes(8 * n), "<u8") >> np.uint64(11)
    others = np.array([secrets.randbelow(classes - 1) for _ in range(n)], np.int64)
    return (bits.astype(float) / 2.0**53).reshape(shape), others.reshape(shape)
