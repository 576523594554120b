"""Criteria of CDP-ADMM on invented data; invented.py says how they are judged."""

import numpy as np
import pytest
from invented import judged

from confide.papers.reproduce import find


def test_cdp_any_decay_says_what_both_numbers_of_rounds_gave():
    module = find("cdp-admm", "fig1-decay").module

    def pairs(last):
        short = [({"part": "a", "name": n, "decay": d}, {"error": np.ones((1, 200))})
                 for n, d in [*(("CDP-ADMM", d) for d in module.DECAYS), *((n, 1.0) for n in module.OTHERS)]
                 ]  # fmt: skip
        long = np.full((1, 300), 1.0)
        slow = np.concatenate([np.full((1, 100), 35.0), np.full((1, 200), last)], axis=1)
        return short + [({"part": "b", "name": "CDP-ADMM", "decay": d}, {"error": slow if d == 0.995 else long})
                        for d in (*module.ANY, module.NOISELESS)]  # fmt: skip

    holds, finding = judged("cdp-admm", "fig1-decay", pairs(1.5), "Section IV-C")
    assert holds and "after 3,000" in finding.measured and "after 1,000" in finding.measured
    assert "R=0.995: 35 (35.0 times)" in finding.measured and "R=0.995: 1.5 (1.5 times)" in finding.measured
    assert not judged("cdp-admm", "fig1-decay", pairs(2.5), "Section IV-C")[0]


def absolute(**bent):
    """What cdp-admm absolute measures if all is well, but for `bent`."""
    module = find("cdp-admm", "absolute").module
    ends = {"none": 0.005, "small": 0.006, "large": 0.008, "later": 0.001, "gradient": 5.0, "exact": 8.0, **bent}
    pairs = []
    for case, key in zip(module.CASES, ("none", "small", "large"), strict=True):
        off = np.full((1, module.LONG if key == "none" else module.ROUNDS), ends[key])
        off[:, module.ROUNDS :] = ends["later"]
        noisy = np.array([]) if key == "none" else np.array([ends["exact"]])
        pairs.append(({"case": case}, {"off": off, "error": off, "worst": np.array([0.02]), "exact": noisy,
                                       "true": 10 * noisy, "gradient": np.array([ends["gradient"]]),
                                       "c1": np.array([5.0 if key == "large" else 1.0]), "guarantee": "assumed"})
                     )  # fmt: skip
    return pairs


@pytest.mark.parametrize(
    "start, bent, why",
    [("the least", {"none": 0.02}, "200 rounds are too few"),
     ("the least", {"none": 0.02, "later": 0.015}, "no cause is known"),
     ("and with noise at total 10 for c1 = 1", {"small": 0.02}, "the noise"),
     ("and with noise at total 10 for c1 = max", {"large": 0.02, "none": 0.02}, "not the noise alone"),
     ("without noise it", {"later": 0.004}, "no cause is known"), ("Assumption 1", {"gradient": 5.1}, ""),
     ("noise for c1", {"exact": 11.0}, "the corollary")],
)  # fmt: skip
def test_cdp_least_absolute_deviation(start, bent, why):
    assert judged("cdp-admm", "absolute", absolute(), start)[0]
    holds, finding = judged("cdp-admm", "absolute", absolute(**bent), start)
    assert not holds and finding.why.startswith(why) and bool(finding.why) == bool(why)
