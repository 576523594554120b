"""Criteria of recycled ADMM on invented data; invented.py says how they are judged."""

import numpy as np
import pytest
from invented import judged

from confide.papers.reproduce import Results, find
from confide.papers.reproduce.findings import DIFFERS


def recycled_curve(above):
    """A loss whose odd iterations fall to `above` at iteration 49, and whose even ones rise."""
    loss = np.full(1200, 1.0)
    loss[:51] += np.geomspace(1.0, above, 51) * np.where(np.arange(51) % 2, 1.05, 1.0)
    return {"loss": loss, "best": 1.0, "away": 0.0}


@pytest.mark.parametrize("largest, holds, why", [(1.4, True, ""), (1.6, False, "only the largest γ"), (0.5, False, "")])
def test_recycled_fig1_similar_rate_for_every_gamma(largest, holds, why):
    module = find("recycled-admm", "fig1").module
    a = {None: recycled_curve(1e-3), 0.0: recycled_curve(1e-3), 0.5: recycled_curve(1.1e-3)}
    found = module.said_of(20, {**a, 2.0: recycled_curve(largest * 1e-3)})
    (one,) = [f for f in found if "as fast as ADMM" in f.what]
    assert (one.verdict != DIFFERS) == holds and one.why.startswith(why) and bool(one.why) == bool(why)
    (other,) = [f for f in module.said_of(20, {**a, 0.5: recycled_curve(2e-3), 2.0: recycled_curve(2e-3)})
                if "as fast as ADMM" in f.what]  # fmt: skip
    assert other.verdict == DIFFERS and not other.why  # γ = 0.5 has no such excuse


@pytest.mark.parametrize("part", ["b", "c"])
@pytest.mark.parametrize("bent, holds", [({}, True), ({1: 1.0}, False), ({4: 1.25}, False)])  # 1.0: R-ADMM's own loss
def test_recycled_fig1_growing_penalties_are_slower_than_r_admm_too(part, bent, holds):
    module = find("recycled-admm", "fig1").module
    pairs = []
    for task in module.tasks(1):
        m, away = task.get("speed", 0), {"away": 0.1, "away_weighted": 0.2}
        loss = bent.get(m, 1 + 0.1 * m) if task["part"] == part else 1 + 0.1 * m
        curve = recycled_curve(1e-3) if task["part"] == "a" else {"loss": np.full(300, loss), "best": 0.9, **away}
        pairs.append(({"agents": 5, "gamma": None, **task}, curve))
    assert judged("recycled-admm", "fig1", pairs, f"Fig. 1({part}): a growing η")[0] == holds
    assert judged("recycled-admm", "fig1", pairs, f"Fig. 1({'c' if part == 'b' else 'b'}): a growing η")[0]


def test_recycled_fig2_has_one_claim():
    module = find("recycled-admm", "fig2").module

    def found(errors):
        pairs = [({"rho": r, "seed": 0}, {"error": e}) for r, e in zip(module.RHOS, errors, strict=True)]
        return module.findings(Results(pairs, 1))

    yes, no = found((0.2, 0.17, 0.16, 0.17, 0.2, 0.25)), found((0.159, 0.1595, 0.16, 0.15, 0.16, 0.16))
    assert [f.ours for f in yes] == [False, True, True]
    assert [f.verdict != DIFFERS for f in yes] == [True] * 3 and [f.verdict == DIFFERS for f in no] == [True] * 3


@pytest.mark.parametrize("loss, error, holds", [(1.1, 0.01, True), (1.2, 0.0, False), (1.0, 0.03, False)])
def test_recycled_fig3_is_one_claim_of_both_alphas(loss, error, holds):
    module = find("recycled-admm", "fig3").module
    pairs = [({"alpha": a, "gamma": g}, {"loss": np.full((1, 50), loss if bent else 1.0),
                                         "error": np.array([0.2 + (error if bent else 0.0)])})
             for a in module.ALPHAS for g in module.GAMMAS for bent in [(a, g) == (2.0, 2.0)]]  # fmt: skip
    assert judged("recycled-admm", "fig3", pairs, "Fig. 3")[0] == holds


def test_recycled_fig4_at_both_alphas():
    module = find("recycled-admm", "fig4").module

    def pairs(last):
        return [({"alpha": a, "growth": q}, {"loss": np.full((1, 50), x), "error": np.array([x])})
                for a in module.ALPHAS
                for q, x in zip(module.GROWTHS, (0.9, 0.8, 0.7, 0.6, 0.5, last if a == 2 else 0.1), strict=True)
                ]  # fmt: skip

    assert judged("recycled-admm", "fig4", pairs(0.4), "Fig. 4: the faster")[0]
    assert not judged("recycled-admm", "fig4", pairs(0.55), "Fig. 4: the faster")[0]
    assert judged("recycled-admm", "fig4", pairs(0.4), "Fig. 4(e)")[0]
    assert judged("recycled-admm", "fig4", pairs(0.55), "Fig. 4(e)")[0]  # the ends, as the sentence says
    assert not judged("recycled-admm", "fig4", pairs(0.95), "Fig. 4(e)")[0]
    assert not [f for f in module.findings(Results(pairs(0.4), 1)) if "range" in f.what]  # one run has none


@pytest.mark.parametrize("last, holds", [(0.1, True), (0.2, False), (0.3, False)])
def test_recycled_fig4_range_at_both_alphas(last, holds):
    module = find("recycled-admm", "fig4").module
    pairs = []
    for a in module.ALPHAS:
        for q in module.GROWTHS:
            wide = {1.0: 0.2, 1.05: last if a == 1 else 0.1}.get(q, 0.5)
            for sign in (-1, 1):  # the range is over all tasks, not within one
                loss = np.full((1, 50), 1.0 + sign * wide / 2)
                loss[:, :-1] += sign * (q - 1)  # what comes before t = 50 does not count
                pairs.append(({"alpha": a, "growth": q, "seeds": sign}, {"loss": loss, "error": np.array([0.2])}))
    assert judged("recycled-admm", "fig4", pairs, "Fig. 4(a), (b): the runs' range")[0] == holds


def compared(**bent):
    """Losses and errors of Fig. 5 by method, the same at every α but for `bent` at α = 1."""
    module = find("recycled-admm", "fig5").module
    pairs = []
    for a in (2.0, 1.0, 0.5):
        for m, x in (("ADMM", 0.5 / a + 0.5), ("M-ADMM", 0.49 / a + 0.5), ("R-ADMM", 0.4), ("MR-ADMM", 0.3)):
            x = bent.get(m.replace("-", ""), x) if a == 1 else x
            case = {"method": m, "alpha": a}
            pairs.append(({"part": "run", **case}, {"loss": np.full((1, 50), x), "error": np.array([x / 4])}))
            pairs.append(({"part": "privacy", **case}, {"bound": np.array([10.0]), "exact": bent.get("exact", 3.0),
                                                        "guarantee": "assumed"}))  # fmt: skip
    sure = {"method": module.PROVEN, "alpha": 1.0}
    pairs.append(({"part": "run", **sure}, {"loss": np.full((1, 50), 0.3), "error": np.array([0.1])}))
    return [*pairs, ({"part": "privacy", **sure}, {"bound": np.array([9.0]), "exact": 2.0, "guarantee": "proven"})]


@pytest.mark.parametrize(
    "start, bent",
    [("Fig. 5(a-c): R- and", {"RADMM": 1.5}), ("Fig. 5(a-c): MR", {"MRADMM": 0.45}), ("Fig. 5(g)", {"RADMM": 1.5}),
     ("M-ADMM has", {"MADMM": 1.5}), ("the exact ε", {"exact": 4.0})],
)  # fmt: skip
def test_recycled_fig5_is_judged_at_every_alpha_at_once(start, bent):
    assert judged("recycled-admm", "fig5", compared(), start)[0]
    assert not judged("recycled-admm", "fig5", compared(**bent), start)[0]


def perturbed(name="", value=None):
    """Output perturbation as the text has it at every α, but for one value at α = 0.5."""
    module = find("recycled-admm", "output-perturbation").module
    pairs = []
    for a in (2.0, 1.0, 0.5):
        end = {"ADMM": 0.9, "R-ADMM": 0.7, "MR-ADMM": 0.5, module.BESIDE: 0.4}
        last = {m: x / 4 for m, x in end.items()}
        before, odd = dict(last), dict.fromkeys(end, 0.1)
        if a == 0.5 and name:
            {"end": end, "last": last, "before": before, "odd": odd}[name]["R-ADMM"] = value
        for m, x in end.items():
            loss = np.where(np.arange(50) % 2, x, x - odd[m])[None]  # t = 50, the last, is even
            run = {"loss": loss, "error": np.array([last[m]]), "errors": np.array([[0.3, before[m], last[m]]])}
            spent = {"pure": 6.0, "exact": 1.0, "guarantee": "assumed"}
            pairs += [({"part": part, "method": m, "alpha": a}, v) for part, v in (("run", run), ("privacy", spent))]
    return pairs


@pytest.mark.parametrize(
    "start, bent",
    [("loss MR", ("end", 0.95)), ("loss MR", ("end", 0.45)), ("R- and MR-ADMM have", ("last", 0.23)),
     ("smaller test errors", ("before", 0.23)), ("even steps", ("odd", -0.1)),
     ("objective perturbation", ("end", 0.39))],
)  # fmt: skip
def test_recycled_output_perturbation_is_judged_at_every_alpha_at_once(start, bent):
    found = find("recycled-admm", "output-perturbation").module.findings(Results(perturbed(), 1))
    assert [f.ours for f in found] == [False, False, True, True, True]
    assert judged("recycled-admm", "output-perturbation", perturbed(), start)[0]
    assert not judged("recycled-admm", "output-perturbation", perturbed(*bent), start)[0]


@pytest.mark.parametrize(
    "without, bound, holds, why",
    [(1.01, 5.0, True, None), (1.03, 5.0, False, "the recycled step lowers the loss: MR-ADMM at α=1"),
     (0.9, 4.0, False, "")],
)  # fmt: skip
def test_recycled_even_steps_is_one_check_of_both_methods(without, bound, holds, why):
    pairs = []
    for m in ("R-ADMM", "MR-ADMM"):
        for a in (2.0, 1.0, 0.5):
            for recycle in (True, False):
                bent = (m, a, recycle) == ("MR-ADMM", 1.0, False)
                pairs.append(({"method": m, "alpha": a, "recycle": recycle},
                              {"loss": np.full((1, 50), without if bent else 1.0), "error": np.array([0.2]),
                               "bound": bound if bent else 5.0}))  # fmt: skip
    said, finding = judged("recycled-admm", "even-steps", pairs, "leaving the even steps out")
    assert said == holds and finding.ours and (holds or finding.why == why)


@pytest.mark.parametrize("argmins, seconds, half, less", [(25, 0.6, True, True), (26, 0.7, False, False)])
def test_recycled_computation_claims_the_time_only(argmins, seconds, half, less):
    def timed(method, n, time):
        return ({"part": "time", "method": method, "trial": 0},
                {"seconds": time, "argmins": n, "loss": np.ones((1, 50)), "best": np.array([0.9])})  # fmt: skip

    pairs = [timed("ADMM", 50, 1.0), timed("R-ADMM", argmins, seconds)]
    pairs += [({"part": "start", "method": "R-ADMM", "trial": t}, {"loss": np.ones(200)}) for t in range(2)]
    holds, finding = judged("recycled-admm", "computation", pairs, "R-ADMM takes half")
    assert holds == half and finding.ours
    holds, finding = judged("recycled-admm", "computation", pairs, "R-ADMM takes much less time")
    assert holds == less and not finding.ours


@pytest.mark.parametrize("bent, holds", [({}, True), ({"MR-ADMM": 0.45}, False), ({"M-ADMM": 0.35}, False)])
def test_recycled_varied_keeps_the_order_of_fig5(bent, holds):
    size = {"ADMM": 1.0, "M-ADMM": 0.9, "R-ADMM": 0.4, "MR-ADMM": 0.3, **bent}
    pairs = [({"method": m}, {"loss": np.full((1, 50), x), "error": np.array([x / 4]), "bound": np.ones((1, 5))})
             for m, x in size.items()]  # fmt: skip
    assert judged("recycled-admm", "varied", pairs, "α_i and η_i that vary")[0] == holds
    assert judged("recycled-admm", "varied", pairs, "with an α_i")[0]
    pairs[1][1]["loss"][:] = 1.1
    assert not judged("recycled-admm", "varied", pairs, "with an α_i")[0]
