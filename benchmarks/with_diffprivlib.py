"""diffprivlib on one split; run by benchmarks/accuracy.py in an environment of its own.

    python with_diffprivlib.py SEED.npz     prints {"epsilon setting": score} as JSON

The file has X, y, test_X, test_y, norm, and for a number low and high. Scores are accuracy or R².
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

EPSILONS = (1.0, 3.0, 8.0)
STRENGTHS = (0.01, 0.1, 1.0, 10.0)


def main() -> None:
    from diffprivlib.models import LinearRegression, LogisticRegression

    warnings.simplefilter("ignore")
    path = Path(sys.argv[1])
    t, seed, out = np.load(path), int(path.stem), {}
    for epsilon in EPSILONS:
        if "low" in t:
            bounds = {"bounds_X": (-np.ones(t["X"].shape[1]), np.ones(t["X"].shape[1])),
                      "bounds_y": (float(t["low"]), float(t["high"]))}  # fmt: skip
            model = LinearRegression(epsilon=epsilon, random_state=seed, **bounds).fit(t["X"], t["y"])
            out[f"{epsilon:g} -"] = model.score(t["test_X"], t["test_y"])
            continue
        for C in STRENGTHS:
            model = LogisticRegression(epsilon=epsilon, data_norm=float(t["norm"]), C=C, random_state=seed)
            out[f"{epsilon:g} {C:g}"] = model.fit(t["X"], t["y"]).score(t["test_X"], t["test_y"])
    print(json.dumps(out))


if __name__ == "__main__":
    main()
