"""What the forking server of `nursery` imports and loads, once."""

import os

os.environ["CONFIDE_THREADS"] = "1"

from importlib import import_module

import numpy as np
from typer.testing import CliRunner

import confide
import confide.cli
import confide.node.daemon
import confide.node.export
from confide.privacy.secure import rho

for part in ("encodings.idna", "scipy.sparse.csgraph", "scipy.special", "confide.cli.node_log", "confide.cli.progress"):
    import_module(part)  # loaded at its first use, which is in every node
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 4))
problem = confide.Problem(confide.Shards.split(X, np.sign(X[:, 0]), 3).clip_rows(1.0), confide.losses.Logistic())
for method in (confide.algorithms.CDPADMM(rounds=2, clip=0.5, noise=0.1), confide.algorithms.DPADMM(rounds=2)):
    confide.simulate(problem, confide.Graph.ring(3), method, record=())
rho(1.0, 1.0, 2)
CliRunner().invoke(confide.cli.app, ["node", "status", "--home", "/nonexistent"])  # the first parse imports much
