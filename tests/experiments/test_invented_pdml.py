"""Criteria of PDML on invented data; invented.py says how they are judged."""

import numpy as np
import pytest
from invented import judged

from confide.papers.reproduce import find


def accuracies(strongest, splice):
    """Table I with 80 % everywhere, `strongest` at ε=0.4 and R=9, 50 % for Banana and `splice` for Splice."""
    module = find("pdml", "table1").module
    cells = np.array([80.0 if cell != (0.4, 9) else strongest for cell in module.CELLS])
    level = {"banana": 50 / 80, "splice": splice / 80}
    return [({"name": n, "seed": 0}, {"accuracy": level.get(n, 1.0) * cells[None]}) for n in module.PUBLISHED]


def test_pdml_table1_loss_and_inferior():
    holds, finding = judged("pdml", "table1", accuracies(68.0, 55.0), "points lost")
    assert holds and finding.published == "10.58"  # mean of the seven printed differences, by hand
    for strongest in (78.0, 62.0):
        assert not judged("pdml", "table1", accuracies(strongest, 55.0), "points lost")[0]
    assert judged("pdml", "table1", accuracies(78.0, 55.0), "Banana and Splice")[0]
    holds, finding = judged("pdml", "table1", accuracies(78.0, 84.0), "Banana and Splice")
    assert not holds and "Splice is not" in finding.why


def test_pdml_table1_larger_epsilon_and_smaller_r_in_every_pair():
    module, start = find("pdml", "table1").module, "larger ε and smaller R"

    def pairs(bent=None, wobble=1.0):
        cells = np.array([80.0, 70.0, 76.0, 69.5, 65.0, 75.5, 68.0])
        out = []
        for name in module.PUBLISHED:
            here = cells.copy()
            if bent and name == "image":
                here[bent[0]] = bent[1]
            both = [here - wobble, here + wobble]
            out += [({"name": name, "seed": t}, {"accuracy": one[None]}) for t, one in enumerate(both)]
        return out

    holds, finding = judged("pdml", "table1", pairs(), start)
    printed = np.array(list(module.PUBLISHED.values()))
    count = sum(int(np.sum(printed[:, i] > printed[:, j])) for i, j in module.PAIRS)
    assert holds and finding.measured.startswith("in 49 of 49")
    assert finding.published == f"yes; in Table I {count} of 49"
    holds, finding = judged("pdml", "table1", pairs((3, 70.5)), start)  # R = 1 above R = 0, by half a point
    assert not holds and finding.why.startswith("R = 0 and R = 1 differ by less than trials do; in print 4 of 14")
    holds, finding = judged("pdml", "table1", pairs((3, 70.5), wobble=0.1), start)  # by more than the trials
    assert not holds and finding.why == ""
    holds, finding = judged("pdml", "table1", pairs((2, 69.0)), start)  # ε = 1 below 0.4
    assert not holds and finding.why == ""


@pytest.mark.parametrize("last, start, holds", [(0.0, 0.005, True), (0.0, 0.008, False), (0.001, 0.005, False)])
def test_pdml_fig4_both_risks_are_close_and_flat(last, start, holds):
    """`start`: what Phase 2 ends above the reference; `last`: how much of that is left to fall from ε = 0.6 on."""
    module, pairs = find("pdml", "fig4").module, []
    for task in module.tasks(1):
        labels = 0.008 * (module.EPSILONS[0] / task["epsilon"]) ** 4
        noise = start * task["bound"] ** 2 - last * (task["epsilon"] == 1.0) * (task["bound"] == 1.0)
        rounds = {0.7: 20, 0.8: 40, 0.9: 60}[task["decay"]]
        curve = np.where(np.arange(100) < rounds, 2.0, 0.6 + labels + noise)
        pairs.append((task, {"risk": curve[None], "reference": np.array([0.6])}))
    finding = judged("pdml", "fig4", pairs, "(c) beyond ε = 0.6")
    assert finding[0] == holds


@pytest.mark.parametrize("quiet, noisy, holds", [(8, 44, True), (44, 8, False), (8, 85, False)])
def test_pdml_fig3_converges_before_the_end(quiet, noisy, holds):
    pairs = [({"curve": c, "seed": 0}, {
        "apart": np.geomspace(1, 1e-4, 100)[None], "risk": np.where(np.arange(100) < at, 2.0, 0.62)[None],
        "reference": np.array([0.6])}) for c, at in (("labels", quiet), ("labels and ADMM", noisy))]  # fmt: skip
    assert judged("pdml", "fig3", pairs, "(b) Phase 2 keeps")[0] == holds


def test_pdml_theorems_what_the_bounds_tell_is_a_check_of_our_own():
    module = find("pdml", "theorems").module

    def pairs(last):
        found = {**dict.fromkeys(module.bounds(), 6.0), "Corollary 2": last}
        return [({}, {"drawn": np.array([[1.0, 44.0]]), "named": np.ones((5, 2)), "bounds": found})]

    for last, holds in ((0.5, True), (6.4, False)):
        found, finding = judged("pdml", "theorems", pairs(last), "at the paper's sizes")
        assert found == holds and finding.ours
