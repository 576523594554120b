"""What a budget buys: accuracy against the total ε.

Five hospitals of very unequal size learn together; the dashed lines show what they reach without privacy, together and
alone. Bands are one standard deviation over the seeds.
"""

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.demo.cohort import cohort
from confide.demo.simulated import learn

hospitals = cohort(seed=1, patients=8000)
problem, graph = learn(hospitals.shards), confide.Graph.ring(5)
method = confide.algorithms.CDPADMM(rounds=100, coupling=0.004, step=15, clip=1.0, noise_decay=0.97)
epsilons = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
accuracy = []
for epsilon in epsilons:
    private = method.calibrated(problem.public(graph), epsilon, delta=1e-5)
    run = confide.simulate(problem, graph, private, range(10), test=hospitals.test, record=("test",), every=100)
    accuracy.append(100 * run.history["test"][-1])
accuracy = np.array(accuracy)


def without_privacy(one):
    return 100 * np.mean(one.predict(hospitals.test[0], one.solve()) == hospitals.test[1])


together = without_privacy(problem)
alone = np.mean([without_privacy(learn(hospitals.shards.halves(k))) for k in range(5)])

figure = Figure(figsize=(7, 4), layout="constrained")
ax = figure.subplots()
mean, sd = accuracy.mean(axis=1), accuracy.std(axis=1, ddof=1)
ax.fill_between(epsilons, mean - sd, mean + sd, color="#0072B2", alpha=0.2, linewidth=0)
ax.plot(epsilons, mean, "o-", color="#0072B2", label="together, private (CDP-ADMM)")
for level, text in ((together, "together, not private"), (alone, "average alone, not private")):
    ax.axhline(level, color="#22303c", linewidth=0.9, linestyle="--")
    ax.annotate(text, (10.0, level), (0, 4), textcoords="offset points", ha="right", color="#22303c")
ax.set(xscale="log", xlabel="total ε, at δ = 1e-5", ylabel="accuracy on the public test set, %")
ax.set_ylim(top=together + 1.5)
ax.set_xticks(epsilons, labels=[f"{e:g}" for e in epsilons])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
figure.savefig("accuracy_against_epsilon.png", dpi=120)

for epsilon, m, s in zip(epsilons, mean, sd, strict=True):
    print(f"ε={epsilon:<4g} {m:5.1f} ± {s:.1f} %")
print(f"without privacy: together {together:.1f} %, a hospital alone {alone:.1f} % on average")
