"""Runs for the tests of reports: small, of every kind a page must show."""

import json
import re

import numpy as np

import confide

HOSTILE = "<script>document.title='broken'</script>\"'&<img src=x onerror=\"document.title='broken'\">"
RING = confide.Graph.ring(4)


def rows(seed=0, count=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, X @ [1.0, -1.0, 0.5] + 0.2 * rng.normal(size=count)


def classifier(method=None, seeds=(0, 1), **options):
    """A simulation of logistic regression, private by default."""
    X, y = rows()
    problem = confide.Problem(confide.Shards.split(X, np.sign(y), 4).clip_rows(2.0), confide.losses.Logistic())
    if method is None:
        method = confide.algorithms.CDPADMM(rounds=20, clip=0.5).calibrated(problem.public(RING), 1.0, 1e-5)
    return confide.simulate(problem, RING, method, seeds=seeds, **options)


def quantile(level=0.3):
    X, y = rows()
    problem = confide.Problem(confide.Shards.split(X, y, 4), confide.losses.Quantile(level), intercept=True)
    method = confide.algorithms.FDPADMM(rounds=10, clip=1.0).published(problem.public(RING), 0.4, 1e-5)
    return confide.simulate(problem, RING, method, seeds=(0, 1))


def charts(page):
    """The numbers of every chart of a page, by its id."""
    figure = r'<figure class="chart" id="chart-([^"]+)">.*?<script type="application/json">(.*?)</script>'
    found = re.findall(figure, page, re.S)
    return {name: json.loads(text) for name, text in found}
