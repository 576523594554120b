"""decent-bench's ADMM on the ridge problem, all agents in one process: `confide bench --peers`."""

import json
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).parent]  # this file has its name

import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402
from decent_array import interoperability as iop  # noqa: E402
from decent_bench.agents import Agent  # noqa: E402
from decent_bench.algorithms.p2p import ADMM  # noqa: E402
from decent_bench.costs import QuadraticCost  # noqa: E402
from decent_bench.networks import P2PNetwork  # noqa: E402

iop.set_backend("numpy", "cpu")
given, settings = np.load(folder / "problem.npz"), json.loads((folder / "settings.json").read_text())
X, y, best = given["X"], given["y"], given["best"]
count, rows, width = X.shape
n = count * rows
costs = [
    QuadraticCost(iop.from_numpy(X[k].T @ X[k] / n + 0.1 / count * np.eye(width)), iop.from_numpy(-X[k].T @ y[k] / n))
    for k in range(count)
]
graph = nx.Graph()
graph.add_nodes_from(range(count))
graph.add_edges_from(given["edges"].tolist())
found = None
for penalty in settings["penalties"]:
    agents = [Agent(cost) for cost in costs]  # an agent belongs to one network
    network, method = P2PNetwork(graph, agents), ADMM(penalty=penalty, relaxation=0.5)
    method.initialize(network)
    began = time.perf_counter()
    for t in range(settings["rounds"]):
        network._step(t)
        method.step(network, t)
        now = np.array([iop.to_numpy(agent.x) for agent in agents])
        far = float(np.linalg.norm(now - best, axis=1).max() / np.linalg.norm(best))
        if far <= settings["distance"]:
            break
    seconds = time.perf_counter() - began
    if far <= settings["distance"] and (found is None or seconds < found["seconds"]):
        found = {"seconds": seconds, "rounds": t + 1, "distance": far, "penalty": penalty}
if found is None:
    sys.exit("no penalty reached the optimum")
print(json.dumps(found))
