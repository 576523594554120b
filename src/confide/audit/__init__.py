"""Audit: attack a method on neighbouring data sets, independently of everything that accounts for its privacy.

    canary = confide.audit.worst_case(confide.losses.Absolute(), method)
    print(confide.audit.run(method, canary, epsilon=1.0, delta=1e-5, mu=0.27))

The claim is handed in as plain numbers: nothing here computes what a method is said to cost. An audit gives a lower
bound; it can refute a claim and never confirms one.
"""

from confide.audit.canary import Canary, worst_case
from confide.audit.engine import run
from confide.audit.result import AuditResult

__all__ = ["AuditResult", "Canary", "run", "worst_case"]
