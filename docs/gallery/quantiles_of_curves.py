"""Quantile regression on curves: what part of a curve matters for the upper tail.

Rows are whole curves, held by five parties. The 90 % quantile of a response is ∫ β(t) x(t) dt + intercept; the basis is
a fixed cosine basis, which costs no privacy.
"""

import numpy as np
from matplotlib.figure import Figure

import confide

rng = np.random.default_rng(0)
grid = np.linspace(0, 1, 60)
shapes = np.array([np.ones(60), np.sqrt(2) * np.cos(np.pi * grid), np.sqrt(2) * np.cos(2 * np.pi * grid)])
scores = rng.normal(size=(8000, 3)) * [0.6, 0.5, 0.4]
curves = scores @ shapes
truth = 0.2 * shapes[0] - 0.4 * shapes[1] + 0.2 * shapes[2]
y = scores @ [0.2, -0.4, 0.2] + 0.15 * rng.normal(size=8000)

figure = Figure(figsize=(7, 4), layout="constrained")
ax = figure.subplots()
results = {}
for epsilon, colour in ((0.2, "#56B4E9"), (1.0, "#0072B2"), (5.0, "#009E73")):
    model = confide.FunctionalQuantileRegressor(
        quantile=0.9, grid=grid, n_basis=3, row_norm=1.5, target_range=(-1, 1), epsilon=epsilon, random_state=0
    ).fit(curves, y)
    below = np.mean(y <= model.predict(curves))
    distance = np.max(np.abs(model.coefficient_function_ - truth))
    results[epsilon] = below, distance
    print(f"ε={epsilon:<3g}  {below:.3f} of the responses below the predicted quantile; β(t) off by {distance:.3f}")
    ax.plot(grid, model.coefficient_function_, color=colour, label=f"learned, ε = {epsilon:g}")
print(model.privacy_)
ax.plot(grid, truth, "--", color="#22303c", label="truth")
ax.set(xlabel="t", ylabel="β(t)")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig("quantiles_of_curves.png", dpi=120)
