"""Criteria on invented data: each says yes to values as the text has them, and no once one of them is bent."""

import numpy as np
import pytest

from confide.papers.reproduce import Results, find
from confide.papers.reproduce.findings import DIFFERS


def judged(paper, name, pairs, start, trials=2):
    """Whether the finding whose sentence begins with `start` holds, and the finding."""
    found = [f for f in find(paper, name).module.findings(Results(pairs, trials)) if f.what.startswith(start)]
    assert len(found) == 1, [f.what for f in found]
    return found[0].verdict != DIFFERS, found[0]


def test_fdp_fig1_at_every_epsilon():
    def pairs(last):
        ends = {10: [1.0, 0.8, 0.7, 0.60], 20: [1.2, 0.9, 0.8, 0.65], 50: [2.0, 1.0, 0.9, last]}
        return [({"workers": m}, {"loss": np.tile(np.array(e)[None, :, None], (1, 1, 5))}) for m, e in ends.items()]

    assert judged("fdp-admm", "fig1", pairs(0.7), "more machines")[0]
    assert not judged("fdp-admm", "fig1", pairs(0.64), "more machines")[0]  # at one ε of four


def test_fdp_fig3_blames_the_noise_for_nothing_that_is_there_without_it():
    level = np.array([2.0, 1.0, 0.9, 0.8, 1.0, 0.95, 0.9, 0.9, 0.5])[:, None]
    flat = level * np.ones(100)
    assert judged("fdp-admm", "fig3", [({}, {"loss": flat[None]})], "fast")[0]
    late = flat * np.concatenate([[1.0], np.linspace(2.0, 1.0, 99)])
    holds, finding = judged("fdp-admm", "fig3", [({}, {"loss": late[None]})], "fast")
    assert not holds and finding.why.startswith("not the noise") and "0.50 to 1.00 at iteration 2" in finding.why
    assert "since" not in finding.why and finding.why.endswith("no run has another step")
    noisy = np.concatenate([late[:-1], flat[-1:]])
    holds, finding = judged("fdp-admm", "fig3", [({}, {"loss": noisy[None]})], "fast")
    assert not holds and finding.why == "no cause is known"


def test_fdp_fpca_names_what_every_k_has():
    def pairs(few, free=0.41, seven=0.36):
        known = np.array([[free, 0.42, 0.80], [free, 0.42, seven], [free, 0.43, few]])
        return [({"source": s}, {"mise": known[None], "K": np.array([[50, 7, 2]])}) for s in find(
            "fdp-admm", "fpca").module.SOURCES]  # fmt: skip

    assert judged("fdp-admm", "fpca", pairs(0.39), "K by 95 %")[0]
    holds, finding = judged("fdp-admm", "fpca", pairs(0.42), "K by 95 %")
    assert not holds and "0.41 to 0.41 without noise" in finding.why and "not that" not in finding.why
    assert "K = 7 does halve it (0.36, its own without noise 0.41)" in finding.why
    assert "halve" not in judged("fdp-admm", "fpca", pairs(0.42, seven=0.41), "K by 95 %")[1].why
    assert judged("fdp-admm", "fpca", pairs(0.42, free=0.1), "K by 95 %")[1].why == "no cause is known"


@pytest.mark.parametrize("used, holds", [(0.070, True), (0.080, False), (0.113, False)])
def test_fdp_sweeps_a_tenth_is_a_tenth_of_the_fit(monkeypatch, used, holds):
    module = find("fdp-admm", "sweeps").module
    gaps = np.full((1, 5, len(module.STEPS), len(module.CHOICES)), 0.2)
    gaps[:, :, 0, 1], gaps[:, :, module.STEPS.index(module.USED_STEP), 0] = 0.067, used
    found = swept(monkeypatch, gaps, "the step in use")
    assert (found.verdict != DIFFERS) == holds and found.measured.startswith("at 56/√l root")
    if used > 0.067:
        assert "24/√l (the least step tried), mean from 10" in found.measured
    gaps[:, :, 1, 1] = 0.06
    assert "32/√l, mean from 10" in swept(monkeypatch, gaps, "the step in use").measured


def swept(monkeypatch, gaps, start):
    """A finding of the sweeps, from ln(measured/printed) without noise: (tables, τ, steps, choices)."""
    module = find("fdp-admm", "sweeps").module
    monkeypatch.setattr(module, "ratios", lambda results: gaps)
    monkeypatch.setattr(module, "written", lambda results: gaps[:, 2])
    monkeypatch.setattr(module, "known", lambda results: [6])
    sizes = {"noise": len(module.SIZES), "root": len(module.BOUNDS)}
    monkeypatch.setattr(module, "noisy", lambda results, part="noise": np.full((1, sizes[part], 20), 0.3))
    (found,) = [f for f in module.findings(Results([], 1)) if f.what.startswith(start)]
    return found


def test_fdp_sweeps_says_how_the_gap_at_the_median_goes_with_the_step(monkeypatch):
    module = find("fdp-admm", "sweeps").module
    gaps, start = np.zeros((1, 5, len(module.STEPS), len(module.CHOICES))), "the printed errors at τ=.5 fit"
    excess = np.linspace(0.06, 0.20, len(module.STEPS))
    gaps[:, 2] = np.log1p(excess)[:, None]
    found = swept(monkeypatch, gaps, start)
    assert found.verdict == DIFFERS and found.why.startswith("no cause is known for all of it: the gap shrinks")
    assert "from 20% at 80/√l to 6% at 24/√l, and 24/√l is the least tried" in found.why
    assert "least gap 6%, at 24/√l (the least step tried)" in found.measured
    assert "beside those at other τ" in swept(monkeypatch, gaps, "one step, average and L").why
    gaps[:, 2, 0] = np.log1p(0.1)  # it turns
    found = swept(monkeypatch, gaps, start)
    assert found.verdict == DIFFERS and "shrinks" not in found.why and "10% at 24/√l, 8% at 32/√l" in found.why
    assert "at 32/√l, mean" in found.measured
    gaps[:, 2, 0] = np.log1p(-0.04)
    assert swept(monkeypatch, gaps, start).verdict != DIFFERS
    assert swept(monkeypatch, gaps, "one step, average and L").why == "no cause is known"


def theorem_parts(factor):
    module = find("fdp-admm", "theorems").module
    known = {"claimed": 0.1, "total": 0.78, "mu": 0.19, "bound": np.ones(100)}
    steps = [({"part": "step", "which": k}, {"mise": np.array([1.0, f * module.column(k, 0.5)[-1]])})
             for k, f in zip(module.MACHINES, [1.0] * 5 + [factor], strict=True)]  # fmt: skip
    sides = {"left": np.zeros((1, 4)), "right": np.ones((1, 4))}
    return [({"part": "bound"}, known), ({"part": "gap", "trial": 0}, {"gap": np.zeros((1, 100))}),
            ({"part": "lemma", "trial": 0}, sides), *steps]  # fmt: skip


def test_fdp_theorem_2s_step_is_one_claim_of_six_tables():
    assert judged("fdp-admm", "theorems", theorem_parts(1.1), "Theorem 2's step")[0]
    assert not judged("fdp-admm", "theorems", theorem_parts(1.2), "Theorem 2's step")[0]
    assert not judged("fdp-admm", "theorems", theorem_parts(0.8), "Theorem 2's step")[0]


def test_fdp_robustness_is_one_claim_of_three_tails():
    def pairs(outliers):
        exact = {"normal": 0.03, "t(3)": 0.07, "t(1)": 9.0, "outliers": outliers}
        return [({"errors": e, "trial": 0}, {
            "quantile, exact": 0.05, "least squares, exact": v, "quantile, private": 0.1, "least squares, private": 0.1,
            "quantile label": "proven", "least squares label": "proven"}) for e, v in exact.items()]  # fmt: skip

    assert judged("fdp-admm", "robust", pairs(10.0), "errors with heavy tails")[0]
    assert not judged("fdp-admm", "robust", pairs(0.04), "errors with heavy tails")[0]


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


def tuned(times):
    """The chosen parameters' error over the grid's least in three data sets of DPSGD at ε=.95, 1 elsewhere."""
    module = find("d-zoa", "tuning").module
    pairs = []
    for penalty, methods in module.METHODS.items():
        for method in (m for m in methods if m != "D-ZOA"):
            for i, factor in enumerate(times if (penalty, method) == ("lasso", "DPSGD") else (1.0,) * len(times)):
                error = np.full((1, len(module.GRID[method])), 2.0 if factor <= 1 else 1.0)
                error[0, module.GRID[method].index(module.TUNED[penalty][method][0.95])] = (
                    2.0 if factor <= 1 else factor
                )
                pairs.append(({"penalty": penalty, "method": method, "epsilon": 0.95, "data_set": i}, {"error": error}))
    return pairs


def test_d_zoa_tuning_tells_where_and_in_which_data_sets():
    assert judged("d-zoa", "tuning", tuned((1.2, 1.2)), "lasso")[0]
    holds, finding = judged("d-zoa", "tuning", tuned((3.0, 1.2)), "lasso")
    assert not holds and "DPSGD at ε=0.95" in finding.measured and finding.why.startswith("the data sets disagree")
    assert "3.00, 1.20 times" in finding.why
    assert judged("d-zoa", "tuning", tuned((3.0, 3.0)), "lasso")[1].why.startswith("no cause is known")


def traded(**bent):
    """Errors that fall as ε/√log(1.25/δ) grows, times `bent[method]` at ε=.95."""
    import confide_experiments.d_zoa._tradeoff as module

    pairs = []
    for method, size in (("DPSGD", 2.0), ("DP-ADMM", 3.0), ("D-ZOA", 1.0)):
        for e, d in module.POINTS:
            error = size / e * np.sqrt(np.log(1.25 / d)) * np.array([[1.0], [1.4]]) * np.ones(200)
            if e == 0.95 and d == 1e-3:
                error = error * np.array(bent.get(method.replace("-", ""), (1.0, 1.0)))[:, None]
            task = {"method": method, "penalty": "lasso", "epsilon": e, "delta": d}
            pairs.append((task, {"error": error, "label": "none"}))
    return pairs


def test_d_zoa_trade_off_is_one_claim_of_all_methods():
    find("d-zoa", "fig5")
    assert judged("d-zoa", "fig5", traded(), "(a), (b) every method")[0]
    holds, finding = judged("d-zoa", "fig5", traded(DPSGD=(9.0, 9.0)), "(a), (b) every method")
    assert not holds and not finding.why and "DPSGD, ε=0.55 to 0.95, δ=0.001" in finding.measured
    chance = judged("d-zoa", "fig5", traded(DZOA=(1.0, 3.0)), "(a), (b) every method")
    assert not chance[0] and "two standard errors" in chance[1].why.replace("\n", " ")
    assert not judged("d-zoa", "fig5", traded(DZOA=(1.9, 1.9)), "(a), (b) every method")[1].why


SETTLES = np.r_[np.geomspace(5, 0.1, 150), np.full(50, 0.1)]


@pytest.mark.parametrize(
    "curve, holds, cause",
    [(SETTLES, True, ""), (np.geomspace(5, 0.1, 200), False, "200 rounds are too few"), (np.full(200, 5.0), False, ""),
     (np.r_[5.0, np.geomspace(0.01, 1, 199)], False, "")],
)  # fmt: skip
def test_d_zoa_fig4_converges_if_it_falls_and_stays(curve, holds, cause):
    pairs = [({"method": m, "epsilon": e, "penalty": "lasso"}, {"error": c[None], "label": "none"})
             for m, c in (("DPSGD", 10 * SETTLES), ("DP-ADMM", curve), ("D-ZOA", SETTLES))
             for e in (0.15, 0.95)] + [({"method": "ADMM", "epsilon": 0.95, "penalty": "lasso"},
                                        {"error": np.ones((1, 200)), "label": "none"})]  # fmt: skip
    found, finding = judged("d-zoa", "fig4", pairs, "all algorithms converge")
    assert found == holds and finding.why.startswith(cause) and (cause or holds or not finding.why)


def test_d_zoa_fig4_excuses_a_ratio_only_where_exact_admm_is_no_further():
    def cause(exact):
        pairs = [({"method": m, "epsilon": e, "penalty": "lasso"}, {"error": np.full((1, 200), x), "label": "none"})
                 for m, x in (("DPSGD", 5.0), ("DP-ADMM", 5.0), ("D-ZOA", 1.0)) for e in (0.15, 0.95)]  # fmt: skip
        pairs.append(({"method": "ADMM", "epsilon": 0.95, "penalty": "lasso"}, {"error": np.full((1, 200), exact)}))
        holds, finding = judged("d-zoa", "fig4", pairs, "ε=0.95: by roughly two orders")
        assert not holds
        return finding.why

    assert "hardly further" in cause(0.8) and cause(0.1) == "no cause is known"


@pytest.mark.parametrize("errors, cause", [((1.0, 1e4), "fewest directions"), ((1e4, 1e4), "")])
def test_d_zoa_trade_off_blames_rare_data_sets_only_if_they_are_rare(errors, cause):
    pairs = traded()
    for task, value in pairs:
        if task["method"] == "D-ZOA" and (task["epsilon"], task["delta"]) == (0.15, 1e-6):
            value["error"] = np.array([1.0, 1.0, *errors])[:, None] * np.ones(200)
        else:
            value["error"] = np.repeat(value["error"], 2, axis=0)
    holds, finding = judged("d-zoa", "fig5", pairs, "(a) D-ZOA has the least")
    assert not holds and cause in finding.why and bool(cause) == bool(finding.why)


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


def test_fdp_tables_causes_are_the_measured_ones():
    find("fdp-admm", "table3")
    from confide_experiments.fdp_admm import _tables as tables

    pairs = [({"design": tables.DESIGNS[0], "level": 0.5, "trial": t}, {"mise": x * tables.column(3, 0.5)[None]})
             for t, x in enumerate((1.19, 1.20, 1.21))]  # fmt: skip
    pairs.append(({"design": tables.DESIGNS[1], "level": 0.5, "trial": 0}, {"mise": np.full((1, 5), 0.49)}))
    found = {f.what: f for f in tables.findings(Results(pairs, 3), 3)}
    assert found["non-private, τ=0.5"].verdict == DIFFERS and found["non-private, τ=0.5"].why == tables.CHOSEN
    (bias,) = [f for what, f in found.items() if what.startswith("τ=.5, non-private")]
    assert bias.verdict == DIFFERS and bias.why == tables.BIAS
    (written,) = [f for what, f in found.items() if what.startswith("design as written")]
    assert written.verdict == DIFFERS and written.why == tables.OTHER_DESIGN


@pytest.mark.parametrize("bent, holds", [({}, True), ({"MR-ADMM": 0.45}, False), ({"M-ADMM": 0.35}, False)])
def test_recycled_varied_keeps_the_order_of_fig5(bent, holds):
    size = {"ADMM": 1.0, "M-ADMM": 0.9, "R-ADMM": 0.4, "MR-ADMM": 0.3, **bent}
    pairs = [({"method": m}, {"loss": np.full((1, 50), x), "error": np.array([x / 4]), "bound": np.ones((1, 5))})
             for m, x in size.items()]  # fmt: skip
    assert judged("recycled-admm", "varied", pairs, "α_i and η_i that vary")[0] == holds
    assert judged("recycled-admm", "varied", pairs, "with an α_i")[0]
    pairs[1][1]["loss"][:] = 1.1
    assert not judged("recycled-admm", "varied", pairs, "with an α_i")[0]


def zeroth(fall, ridge=31):
    """Curves of fig1 that reach .5 at given iterations; the central methods' errors end at `fall` of those before."""
    pairs = []
    for penalty in ("lasso", "ridge"):
        for m, at in (("OR-ZO", 30), ("ZOO-ADMM", 33), ("D-ZOA", ridge)):
            curve = np.where(np.arange(1, 201) < at, 1.0, 0.4)
            curve[-20:] *= fall if m != "D-ZOA" else 0.1
            pairs.append(({"penalty": penalty, "method": m}, {"error": curve[None], "label": "none"}))
    return pairs


def test_d_zoa_fig1_names_what_its_curves_show():
    assert judged("d-zoa", "fig1", zeroth(0.1), "ridge: D-ZOA's error")[0]
    holds, finding = judged("d-zoa", "fig1", zeroth(0.5), "ridge: D-ZOA's error")
    assert not holds and "not steady yet" in finding.why and "OR-ZO to 50%" in finding.why
    assert judged("d-zoa", "fig1", zeroth(1.0), "ridge: D-ZOA's error")[1].why.endswith("fall (D-ZOA to 10%)")
    one_ahead = zeroth(0.1)
    for task, value in one_ahead:
        value["error"][:, -20:] *= 1e-3 if task["method"] == "OR-ZO" else 1.0
    assert not judged("d-zoa", "fig1", one_ahead, "ridge: D-ZOA's error")[0]  # comparable to one of them is not both
    assert judged("d-zoa", "fig1", zeroth(0.1, ridge=34), "ridge: the central")[0]
    holds, finding = judged("d-zoa", "fig1", zeroth(0.1), "ridge: the central")
    assert not holds and finding.why.startswith("no cause is known")


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


def operations(**bent):
    """Counts of d-zoa complexity as the text has them, but for `bent`: (key, doubled size) to times."""
    times = {("evaluations", "P"): 1.0, ("gradient", "T"): 1.0, ("gradient", "J"): 1.0, **bent.get("times", {})}
    start = {"evaluations": 1e4, "operations": 2e5, "gradient": bent.get("one", 800.0)}
    return [({"doubled": d, "data_set": 0},
             {**{k: np.array([v * (times.get((k, d), 2.0) if d else 1.0)]) for k, v in start.items()},
              "apart": np.array([bent.get("apart", 0.0)]), "gradient apart": np.array([0.0])})
            for d in ("", "T", "J", "P", "N")]  # fmt: skip


@pytest.mark.parametrize(
    "start, bent",
    [("D-ZOA's operations", {"times": {("operations", "P"): 4.0}}),
     ("D-ZOA's operations", {"times": {("operations", "T"): 1.8}}),
     ("rows evaluated", {"times": {("evaluations", "J"): 1.0}}),
     ("rows evaluated", {"times": {("evaluations", "P"): 2.0}}), ("D-ZOA takes more", {"one": 1e5}),
     ("a gradient's", {"times": {("gradient", "P"): 4.0}}), ("what is counted", {"apart": 0.1})],
)  # fmt: skip
def test_d_zoa_complexity(start, bent):
    assert judged("d-zoa", "complexity", operations(), start)[0]
    assert not judged("d-zoa", "complexity", operations(**bent), start)[0]
