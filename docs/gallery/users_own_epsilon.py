"""Every user's own ε: labels randomised where the people are.

Each person picks ε before the label is read and reports a label that is true with odds e^ε : 1. The loss undoes the
bias person by person, and a second, exactly accounted phase protects the features while the parties learn. Of the
labels the run says "at most ∞": each user's own ε is all that is promised, and nobody's is promised to another.
"""

import numpy as np

import confide

rng = np.random.default_rng(0)
people = 6000
X = rng.normal(size=(people, 2))
y = np.where(X @ [2.0, -1.0] + rng.logistic(size=people) > 0, 1.0, -1.0)
epsilon = rng.choice([0.5, 1.0, 3.0], size=people)  # chosen before the label is read
reported = confide.privacy.randomize_labels(y, epsilon, seed=0)  # seed=None draws from the operating system

for e in (0.5, 1.0, 3.0):
    print(f"ε={e:g}: {np.mean(reported[epsilon == e] == y[epsilon == e]):.3f} of the labels are true")

shards = confide.Shards.from_groups(X, reported, np.arange(people) % 4, {"epsilon": epsilon}).clip_rows(2.0)
loss = confide.losses.NoisyLabels(confide.losses.Logistic(), epsilon_min=0.5)
problem = confide.Problem(shards, loss, confide.penalties.L2(0.02))
graph = confide.Graph.complete(4)
method = confide.algorithms.PrivatePDML(rounds=60, coupling=0.1).calibrated(problem.public(graph), 2.0, 1e-5)
run = confide.simulate(problem, graph, method, seeds=range(5))
angle = run.model / np.linalg.norm(run.model, axis=1, keepdims=True)
truth = np.array([2.0, -1.0]) / np.sqrt(5)
cosine = float(np.mean(angle @ truth))
print(f"direction of the model against the truth: cosine {cosine:.3f}")
print(run.privacy)
