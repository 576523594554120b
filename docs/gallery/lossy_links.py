"""Lossy links: a dropped message costs time, not correctness and not privacy.

A link that is down is down both ways, and each end puts its own last message in the missing one's place: degree,
sensitivity and the sum of the duals stay as they were. So the optimum is still reached, later.
"""

import numpy as np

import confide

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
y = X @ [1.0, 0.0, -1.0, 0.5] + 0.3 * rng.normal(size=600)
problem = confide.Problem(confide.Shards.split(X, y, parties=6), confide.losses.Squared(), confide.penalties.L2(0.1))
graph = confide.Graph.ring(6)
quiet = confide.algorithms.LinearizedADMM(rounds=300, coupling=0.3, step=0.5)
private = confide.algorithms.CDPADMM(rounds=60, coupling=0.3, step=0.5, clip=1.0)
private = private.calibrated(problem.public(graph), epsilon=2.0, delta=1e-5)

final, rounds, spent = {}, {}, {}
print("links down  rounds to an error of 1e-9  ε of the private method")
for drop in (0.0, 0.2, 0.5):
    run = confide.simulate(problem, graph, quiet, drop=drop)
    rounds[drop] = int(np.argmax(run.history["error"][:, 0] < 1e-9)) + 1
    final[drop] = run.estimates[0].mean(axis=0)
    spent[drop] = confide.simulate(problem, graph, private, drop=drop, record=()).privacy.epsilon(1e-5)
    print(f"{drop:9.0%}  {rounds[drop]:25}  {spent[drop]:23.3f}")
