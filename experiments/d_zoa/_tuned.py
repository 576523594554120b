"""What the baselines are tuned over, and what was chosen: `confide reproduce d-zoa tuning` repeats the search."""

from __future__ import annotations

STEPS, DECAYS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (0.5, 1.0)  # η_t = step / t^decay
GRID: dict[str, list[dict[str, float]]] = {
    "DPSGD": [{"step": s, "step_decay": d} for s in STEPS for d in DECAYS],
    "DP-ADMM": [{"coupling": p, "step": s, "step_decay": d} for p in (0.1, 1.0, 4.0) for s in STEPS for d in DECAYS],
    "PVP": [{"coupling": p} for p in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)],
    "DVP": [{"coupling": p} for p in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)],
}

_FLAT = {0.15: (0.05, 0.5), 0.35: (0.2, 0.5), 0.55: (0.5, 0.5), 0.95: (0.5, 0.5)}  # lasso: ε -> step, decay
_CURVED = {0.15: (0.1, 0.5), 0.35: (0.2, 0.5), 0.55: (2.0, 1.0), 0.95: (2.0, 1.0)}  # ridge
_RHO = {0.15: 4.0, 0.35: 4.0, 0.55: 4.0, 0.95: 1.0}  # DP-ADMM's, for both

# penalty -> method -> ε of one iteration at δ = 10⁻³ -> parameters: the grid's best with `--trials 8`
TUNED: dict[str, dict[str, dict[float, dict[str, float]]]] = {
    penalty: {
        "DPSGD": {e: {"step": s, "step_decay": d} for e, (s, d) in steps.items()},
        "DP-ADMM": {e: {"coupling": _RHO[e], "step": s, "step_decay": d} for e, (s, d) in steps.items()},
    }
    for penalty, steps in (("lasso", _FLAT), ("ridge", _CURVED))
}
TUNED["ridge"]["PVP"] = {e: {"coupling": p} for e, p in ((0.15, 32.0), (0.35, 16.0), (0.55, 8.0), (0.95, 8.0))}
TUNED["ridge"]["DVP"] = {e: {"coupling": p} for e, p in ((0.15, 16.0), (0.35, 16.0), (0.55, 8.0), (0.95, 8.0))}
