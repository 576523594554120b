"""Skewed splits: parties with unlike data still meet at the joint optimum.

Labels and sizes are spread unevenly over five parties (Dirichlet 0.3): one holds 99 % of one class. Decentralised
gradient descent (`DPSGD`) with a constant step settles away from the optimum, further where parties are unlike; ADMM's
dual variables correct for what the neighbours do not see. Both without noise, and again at ε = 1, δ = 10⁻⁵.
"""

import numpy as np

import confide

rng = np.random.default_rng(3)
X = rng.normal(size=(6000, 4))
y = np.where(X @ [1.5, -1.0, 0.5, 0.0] + rng.logistic(size=6000) > 0, 1.0, -1.0)
graph = confide.Graph.ring(5)
A = confide.algorithms
methods = {
    "DPSGD": A.DPSGD(rounds=300, step=10, step_decay=0.0, clip=1.0),
    "CDPADMM": A.CDPADMM(rounds=300, coupling=0.02, step=10, clip=1.0, noise_decay=0.985),
}
error = {}
print("split   method    error, no noise   error at ε=1")
for split, skew in (("even", None), ("skewed", ("label", 0.3))):
    shards = confide.Shards.split(X, y, parties=5, seed=1, skew=skew).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.01), weighting="rows")
    for name, method in methods.items():
        quiet = confide.simulate(problem, graph, method, every=300)
        private = method.calibrated(problem.public(graph), epsilon=1.0, delta=1e-5)
        noisy = confide.simulate(problem, graph, private, seeds=range(5), every=300)
        error[split, name] = quiet.history["error"][-1, 0], noisy.history["error"][-1].mean()
        print(f"{split:7} {name:8} {error[split, name][0]:16.2e} {error[split, name][1]:14.3f}")
