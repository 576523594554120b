"""MR-ADMM: R-ADMM with a penalty parameter of each agent's own that may grow; private when given noise.

Zhang, Khalili and Liu, "Recycled ADMM: Improving the Privacy and Accuracy of Distributed Algorithms", IEEE Trans.
Inf. Forensics Secur. 15, 2020, Algorithms 2 and 3. The lines are R-ADMM's with η_i(2k-1) in place of η:

    4    f_i(2k-1) ← argmin O(f) + (γ_i + ε_i)ᵀf + η_i(2k-1) Σ_j ‖½(f_i + f_j) - f‖²     (14), (18)
    5    send f_i(2k-1);  γ_i ← γ_i + η_i(2k-1) Σ_j (f_i(2k-1) - f_j(2k-1))               (15)
    7    f_i(2k) as in (16), (19)

paper       code             shape    public argument
η_i(2k-1)   eta              A 1      penalty · growth^k
q_1(i)      growth           A 1      growth

Differs from the paper: with unequal η_i the duals do not sum to zero and the method converges to argmin Σ O_i/η_i.
`common_dual=True` is the corrected form: every dual moves by the smallest η_i of the round, and the limit is the
optimum. growth > 1 violates the boundedness in Theorem IV.1 and freezes short of the optimum.

Privacy: as R-ADMM, each round with its own η_i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from confide.algorithms.base import Array, Parameter
from confide.algorithms.r_admm import RADMM
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class MRADMM(RADMM):
    """Per-agent penalty parameters penalty·growth^k."""

    paper = "Zhang et al. 2020, MR-ADMM"

    growth: Parameter = 1.0
    common_dual: bool = False

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("growth")

    def eta(self, t: int, public: Public) -> Array:
        return public.each(self.penalty) * public.each(self.growth) ** (t if not self.recycle else (t + 1) // 2)

    def dual_step(self, t: int, public: Public) -> Array:
        if not self.common_dual:
            return self.eta(t, public)
        whole = replace(public, agents=np.arange(public.count))
        return np.full((len(public.agents), 1), self.eta(t, whole).min())
