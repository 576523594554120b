"""Ring or complete graph: how the network decides the speed.

The same ten parties on four graphs, without noise, so that only the network differs. The spectral gap of a graph is how
fast its averages mix; links are what each round costs in messages.
"""

import numpy as np
from matplotlib.figure import Figure

import confide

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 5))
y = X @ [1.0, -2.0, 0.5, 0.0, 1.0] + rng.normal(size=1000)
problem = confide.Problem(confide.Shards.split(X, y, parties=10), confide.losses.Squared(), confide.penalties.L2(0.1))
graphs = {name: getattr(confide.Graph, name)(10) for name in ("path", "ring", "star", "complete")}

figure = Figure(figsize=(9, 4), layout="constrained")
ax, *rest = figure.subplots(1, 2, width_ratios=(2, 1))
graphs["ring"].draw(ax=rest[0], title="the ring")
rounds = {}
print("graph      links  spectral gap  rounds to 1e-6")
for name, graph in graphs.items():
    pull = 6.0 / graph.degrees.sum()  # the same total for every graph: many links pull each less
    method = confide.algorithms.LinearizedADMM(rounds=400, coupling=pull, step=0.5)
    run = confide.simulate(problem, graph, method)
    error = run.history["error"][:, 0]
    rounds[name] = int(np.argmax(error < 1e-6)) + 1 if error.min() < 1e-6 else None
    ax.semilogy(run.history["round"], error, label=name)
    print(f"{name:9} {len(graph.edges):6}  {graph.spectral_gap:12.3f}  {rounds[name] or 'more than 400':>14}")
ax.set(xlabel="round", ylabel="relative error to the joint optimum", ylim=(1e-12, 10))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig("ring_or_complete.png", dpi=120)
