"""MR-ADMM: R-ADMM with a coupling of each agent's own that may grow; private when given noise.

Zhang, Khalili and Liu, "Recycled ADMM: Improving the Privacy and Accuracy of Distributed Algorithms", IEEE Trans.
Inf. Forensics Secur. 15, 2020, Algorithms 2 and 3. The lines are R-ADMM's with η_i(2k-1) in place of η:

    4    f_i(2k-1) ← argmin O(f) + (γ_i + ε_i)ᵀf + η_i(2k-1) Σ_j ‖½(f_i + f_j) - f‖²     (14), (18)
    5    send f_i(2k-1);  γ_i ← γ_i + η_i(2k-1) Σ_j (f_i(2k-1) - f_j(2k-1))               (15)
    7    f_i(2k) as in (16), (19)

paper       code             shape    public argument
η_i(2k-1)   eta              A 1      coupling · growth^k · coupling_profile[k - 1]
q_1(i)      growth           A 1      growth

`coupling_profile`, (K,) or (K, agents), gives any other schedule: K rounds that minimise.

Differs from the paper: with unequal η_i the duals do not sum to zero and the method converges to argmin Σ O_i/η_i.
`common_dual=True` is the corrected form: every dual moves by the smallest η_i of the round, and the limit is the
optimum. growth > 1 violates the boundedness in Theorem IV.1 and freezes short of the optimum.

Privacy: as R-ADMM, each round with its own η_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.algorithms.base import Array, Parameter
from confide.algorithms.r_admm import RADMM
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class MRADMM(RADMM):
    """R-ADMM whose coupling is each agent's own and grows.

    growth              above 0: the coupling of minimisation k is coupling·growth^k; one number, or one per agent
    coupling_profile    (K,) or (K, agents), above 0: a further factor of each of the K minimisations' coupling; None: 1
    common_dual         whether every dual moves by the smallest coupling of the round, which ends at the optimum; else
                        by its own
    """

    paper = "Zhang et al. 2020, MR-ADMM"

    growth: Parameter = 1.0
    coupling_profile: Any = None
    common_dual: bool = False

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("growth")
        self.profile("coupling_profile", public)

    def eta(self, t: int, public: Public) -> Array:
        eta = public.each(self.coupling) * public.each(self.growth) ** (self.turn(t) + 1)
        profile = self.profile("coupling_profile", public)
        return eta if profile is None else eta * profile[self.turn(t)][public.agents][:, None]

    def dual_size(self, t: int, public: Public) -> Array:
        if not self.common_dual:
            return self.eta(t, public)
        return np.full((len(public.agents), 1), self.eta(t, public.whole).min())
