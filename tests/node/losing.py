"""Five members of a private sum, one of whom may be lost: what tests of that have in common."""

from village import NAMES

import confide

ROUNDS = 8
DESCENT = {"name": "JointDescent", "rounds": ROUNDS, "noise": 0.5, "first": "gradient", "collusion": 2}
PATH, RING, STAR = confide.Graph.path(5), confide.Graph.ring(5), confide.Graph.star(5)


def stay_without(*lost):
    return [name for name in NAMES if name not in lost]
