"""Audit of a broken variant: half the noise, the same claim.

An audit runs a method thousands of times on two data sets that differ in one row, and bounds ε from below by how well
the messages tell them apart. It does not look at the accountant, so a bug in a method's noise can't hide there.
"""

from dataclasses import dataclass

import confide
from confide.privacy import mu_for


@dataclass(frozen=True, eq=False)
class HalfTheNoise(confide.algorithms.CDPADMM):
    """A slip of the kind that reviews miss: the standard deviation is halved where it is drawn."""

    def local(self, t, state, block, public, noise):
        class Halved:
            def gaussian(self, name, mean, scale):
                return noise.gaussian(name, mean, scale / 2)

        return super().local(t, state, block, public, Halved())


results = {}
for kind in (confide.algorithms.CDPADMM, HalfTheNoise):
    method = kind(rounds=3, clip=1.0)
    canary = confide.audit.worst_case(confide.losses.Absolute(), method)
    method = method.calibrated(canary.public(method), epsilon=1.0, delta=1e-5)
    results[kind.__name__] = confide.audit.run(
        method, canary, epsilon=1.0, delta=1e-5, mu=mu_for(1.0, 1e-5), repetitions=4000
    )
    print(f"{kind.__name__}: {results[kind.__name__].verdict}")
results["HalfTheNoise"].draw("audit_of_a_broken_variant.png")
