"""One budget over all runs: the ledger.

A population is a name for the people in the data. Every release about them is charged to it before it leaves, in
whichever run; a run whose whole schedule does not fit is refused before it reads a row.
"""

from itertools import chain

import numpy as np

import confide
from confide.demo.cohort import cohort
from confide.privacy.ledger import BudgetExceeded, Ledger

hospitals = cohort(seed=1, patients=4000)
problem = confide.Problem(hospitals.shards, confide.losses.Logistic(), confide.penalties.L2(1e-3))
graph = confide.Graph.ring(5)
ledger = Ledger("ledger.sqlite")
ledger.open_population("mercy-2026", epsilon=1.0, delta=1e-5)

refused = None
for run, epsilon in (("readmission", 0.5), ("readmission, longer", 0.6), ("length of stay", 0.6)):
    method = confide.algorithms.CDPADMM(rounds=20, clip=1.0).calibrated(problem.public(graph), epsilon, 1e-5)
    # what Mercy, agent 0, would release: known from public quantities, before a row is read
    events = [
        [confide.privacy.Gaussian(float(e.sensitivity[0]), float(np.broadcast_to(e.scale, 5)[0])) for e in one]
        for one in method.events(problem.public(graph))
    ]
    try:
        ledger.reserve("mercy-2026", run, events)
    except BudgetExceeded as refusal:
        refused = run
        print(f"{run}: refused\n  {refusal}")
        continue
    for t, cost in enumerate(events, start=1):
        ledger.charge("mercy-2026", run, t, cost)
    alone = confide.privacy.epsilon(chain.from_iterable(events), 1e-5)
    print(f"{run}: ε={alone:.3f} by itself, {ledger.spent('mercy-2026'):.3f} in total")
print(f"left: {ledger.remaining('mercy-2026'):.3f}")
