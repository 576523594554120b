"""disropt's gradient tracking on the ridge problem, one MPI process per agent: `confide bench --peers`.

mpiexec -n 20 python -m mpi4py disropt.py FOLDER
"""

import json
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).parent]  # this file has its name

import numpy as np  # noqa: E402
from disropt.agents import Agent  # noqa: E402
from disropt.algorithms.gradient_tracking import GradientTracking  # noqa: E402
from disropt.functions import QuadraticForm, Variable  # noqa: E402
from disropt.problems.problem import Problem  # noqa: E402
from disropt.utils.graph_constructor import metropolis_hastings  # noqa: E402
from mpi4py import MPI  # noqa: E402

AT_ONCE = 25  # rounds between two looks at how far the agents are
DIVERGED = 1e3  # a step that leads this far away leads nowhere

comm = MPI.COMM_WORLD
k, count = comm.Get_rank(), comm.Get_size()
given, settings = np.load(folder / "problem.npz"), json.loads((folder / "settings.json").read_text())
links = np.zeros((count, count))
for a, b in given["edges"]:
    links[a, b] = links[b, a] = 1.0
weights = metropolis_hastings(links)
X, y, best = given["X"][k], given["y"][k], given["best"]
n, width = given["X"].shape[0] * given["X"].shape[1], X.shape[1]
P = X.T @ X / n / 2 + 0.05 / count * np.eye(width)  # ½‖Xb - y‖²/n + ½·0.1‖b‖²/K
q = -(X.T @ y / n).reshape(-1, 1)
found = None
for step in settings["steps"]:
    agent = Agent(
        in_neighbors=np.nonzero(links[k])[0].tolist(), out_neighbors=np.nonzero(links[:, k])[0].tolist(),
        in_weights=weights[k].tolist(),
    )  # fmt: skip
    agent.set_problem(Problem(QuadraticForm(Variable(width), P, q)))
    method = GradientTracking(agent=agent, initial_condition=np.zeros((width, 1)), enable_log=True)
    seconds, done, far = 0.0, 0, 1.0  # nought is 1 away from the optimum, in units of its length
    while found is None and done < settings["rounds"] and far < DIVERGED:
        comm.Barrier()
        began = time.perf_counter()
        path = method.run(iterations=AT_ONCE, stepsize=step * count)
        comm.Barrier()
        spent = time.perf_counter() - began
        own = np.linalg.norm(path[:, :, 0] - best, axis=1) / np.linalg.norm(best)
        every = np.max(comm.allgather(own), axis=0)  # the farthest agent, by round
        near = np.flatnonzero(every <= settings["distance"])
        if len(near):
            last = int(near[0]) + 1
            found = {"seconds": seconds + spent * last / AT_ONCE, "rounds": done + last,
                     "distance": float(every[near[0]]), "step": step}  # fmt: skip
        seconds, done, far = seconds + spent, done + AT_ONCE, every[-1]
    if found is not None:
        break
if k == 0:
    if found is None:
        sys.exit("no step reached the optimum")
    print(json.dumps(found))
