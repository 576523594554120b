"""Every method, one file each. `REGISTRY` lists them all: what is not in it does not exist for the contracts."""

from confide.algorithms.admm import ADMM
from confide.algorithms.base import Algorithm, Schedule
from confide.algorithms.cdp_admm import CDPADMM
from confide.algorithms.ddp_admm import DDPADMM
from confide.algorithms.dp_admm import DPADMM
from confide.algorithms.dpsgd import DPSGD
from confide.algorithms.dvp import DVP
from confide.algorithms.dzoa import DZOA
from confide.algorithms.f_admm import FADMM
from confide.algorithms.fdp_admm import FDPADMM
from confide.algorithms.gaussian import Ask, GaussianMethod, GaussianRelease
from confide.algorithms.joint_descent import JointDescent
from confide.algorithms.joint_moment import JointMoment
from confide.algorithms.joint_tally import JointTally
from confide.algorithms.linearized_admm import LinearizedADMM
from confide.algorithms.m_admm import MADMM
from confide.algorithms.mr_admm import MRADMM
from confide.algorithms.orzo import ORZO
from confide.algorithms.pdml import PDML
from confide.algorithms.private_pdml import PrivatePDML
from confide.algorithms.private_zeroth import PrivateZeroth
from confide.algorithms.pvp import PVP
from confide.algorithms.r_admm import RADMM
from confide.algorithms.second_moment import SecondMoment
from confide.algorithms.summed import SummedMethod
from confide.algorithms.zoo_admm import ZOOADMM

REGISTRY: dict[str, type[Algorithm]] = {
    kind.__name__: kind
    for kind in (
        ADMM, LinearizedADMM, DPADMM, DDPADMM, CDPADMM, RADMM, MRADMM, DVP, PVP, MADMM, DZOA, PrivateZeroth, DPSGD,
        ORZO, ZOOADMM, FADMM, FDPADMM, PDML, PrivatePDML,
    )
}  # fmt: skip

# Phases that come before learning: they keep the contract but do not minimise.
PHASES: dict[str, type[Algorithm]] = {"SecondMoment": SecondMoment}

# Methods that share their noise behind masks: they may run only where the sum is private.
SUMMED: dict[str, type[SummedMethod]] = {kind.__name__: kind for kind in (JointDescent, JointMoment, JointTally)}

__all__ = [
    "ADMM", "CDPADMM", "DDPADMM", "DPADMM", "DPSGD", "DVP", "DZOA", "FADMM", "FDPADMM", "MADMM", "MRADMM", "ORZO",
    "PDML", "PHASES", "PVP", "RADMM", "REGISTRY", "SUMMED", "ZOOADMM", "Algorithm", "Ask", "GaussianMethod",
    "GaussianRelease", "JointDescent", "JointMoment", "JointTally", "LinearizedADMM", "PrivatePDML",
    "PrivateZeroth", "Schedule", "SecondMoment", "SummedMethod",
]  # fmt: skip
