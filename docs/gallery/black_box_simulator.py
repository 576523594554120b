"""A simulator in the loop: fitting what has no gradient, only values, with each party's runs kept private.

Five plants each observed how long batches took under a load x. The model is a queue with a buffer, run step by step:
its two parameters, service rate and buffer, enter by comparisons and a floor, so that the squared error has no
gradient. Zeroth-order methods ask for values alone. `DZOA` uses them as they are, 2,000 of each row here, and what its
paper claims of privacy is refuted. `PrivateZeroth` asks for 60, clips each row's difference of two values and adds
noise to their mean. Its guarantee is *assumed*: the proof needs a simulator that treats each row alone and remembers
none, and nothing enforces that of code from elsewhere.
"""

import numpy as np

import confide


def queue(parameters, x, minutes=30):
    """Work that is left after half an hour of arrivals x a minute, for each x; what exceeds the buffer is lost."""
    rate, buffer = parameters
    waiting = np.zeros(len(x))
    for _ in range(minutes):
        waiting = np.clip(waiting + x - rate, 0.0, max(buffer, 0.0))
    return waiting


def error(parameters, X, y):
    return (queue(parameters + START, X[:, 0]) - y) ** 2


START, TRUE = np.array([0.6, 1.0]), np.array([1.0, 1.6])
rng = np.random.default_rng(0)
X = rng.uniform(0.5, 1.6, size=(1000, 1))
y = queue(TRUE, X[:, 0]) + 0.05 * rng.normal(size=len(X))

loss = confide.losses.BlackBox(function=error, coefficients=2, bound=10.0)
problem = confide.Problem(confide.Shards.split(X, y, 5, seed=0), loss)
ring, rows = confide.Graph.ring(5), []
settings = {"rounds": 15, "coupling": 1.0, "step": 0.25, "step_decay": 0.3, "directions": 2, "smoothing": 0.05}
dzoa = confide.algorithms.DZOA(rounds=10, coupling=1.0, inner_steps=50, directions=2, smoothing=0.1)
plain = confide.algorithms.PrivateZeroth(**settings, clip=2.0)
private = plain.calibrated(problem.public(ring), epsilon=4.0, delta=1e-5)
methods = {"start": None, "DZOA": dzoa, "PrivateZeroth, no noise": plain, "PrivateZeroth, ε=4": private}

print("method                    service rate   buffer   mean squared error   guarantee at δ=1e-5 with secure noise")
for name, method in methods.items():
    found, label = np.zeros(2), ""
    if method is not None:
        run = confide.simulate(problem, ring, method, record=())
        found, label = run.model[0], str(method.guarantee(problem.public(ring)).label)
    mean = problem.objective(found) / 5
    rows.append((name, *(found + START), mean, label))
    print(f"{name:25} {found[0] + START[0]:12.3f} {found[1] + START[1]:8.3f} {mean:20.4f}   {label}")
print(f"{'true':25} {TRUE[0]:12.3f} {TRUE[1]:8.3f}")
