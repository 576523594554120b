"""Methods at one budget: the same total (ε, δ) for each, over all its rounds.

Comparing methods at the same noise, or at the same ε *per round*, says little: they need different numbers of rounds.
Here each method gets the least noise whose exact total over its own rounds is ε = 1, δ = 10⁻⁵.
"""

import confide
from confide.demo.cohort import cohort

hospitals = cohort(seed=1, patients=8000)
problem = confide.Problem(
    hospitals.shards, confide.losses.Logistic(), confide.penalties.L2(1e-3), weighting="rows", intercept=True
)
graph = confide.Graph.ring(5)
public = problem.public(graph)
A = confide.algorithms
methods = [
    A.CDPADMM(rounds=100, coupling=0.004, step=15, clip=1.0, noise_decay=0.97),
    A.DDPADMM(rounds=100, coupling=0.004, step=15, clip=1.0),
    A.DPSGD(rounds=100, step=15, step_decay=0.1, clip=1.0),
    A.PVP(rounds=30, coupling=0.006),
    A.RADMM(rounds=30, coupling=0.006, damping=0.01, release_noise=0.05),
]
results = {}
print("method     rounds  accuracy       ε     guarantee")
for method in methods:
    private = method.calibrated(public, epsilon=1.0, delta=1e-5)
    run = confide.simulate(problem, graph, private, seeds=range(5), test=hospitals.test, record=("test",), every=10)
    accuracy = run.history["test"][-1]
    results[run.algorithm] = (run, accuracy.mean())
    print(
        f"{run.algorithm:10} {run.rounds:5}   {accuracy.mean():.3f} ± {accuracy.std(ddof=1):.3f}"
        f"  {run.privacy.epsilon(1e-5):.3f}  {run.privacy.guarantee.label}"
    )
