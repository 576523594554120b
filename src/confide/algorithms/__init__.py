"""Every method, one file each. `REGISTRY` lists them all: what is not in it does not exist for the contracts."""

from confide.algorithms.admm import ADMM
from confide.algorithms.base import Algorithm, GaussianMethod, Schedule
from confide.algorithms.cdp_admm import CDPADMM
from confide.algorithms.ddp_admm import DDPADMM
from confide.algorithms.dp_admm import DPADMM
from confide.algorithms.dpsgd import DPSGD
from confide.algorithms.dvp import DVP
from confide.algorithms.linearized_admm import LinearizedADMM
from confide.algorithms.m_admm import MADMM
from confide.algorithms.mr_admm import MRADMM
from confide.algorithms.pvp import PVP
from confide.algorithms.r_admm import RADMM

REGISTRY: dict[str, type[Algorithm]] = {
    kind.__name__: kind
    for kind in (
        ADMM, LinearizedADMM, DPADMM, DDPADMM, CDPADMM, RADMM, MRADMM, DVP, PVP, MADMM, DPSGD,
    )
}  # fmt: skip

__all__ = ["REGISTRY", "Algorithm", "GaussianMethod", "Schedule", *REGISTRY]
