"""Audit: attack a method on neighbouring data sets, independently of everything that accounts for its privacy.

    print(confide.audit.run(method, confide.losses.Absolute(), epsilon=1.0, delta=1e-5, mu=0.27))

tries a family of rows against neighbours who lie, and bounds the loss of the pair that promises most. One pair alone:

    canary = confide.audit.worst_case(confide.losses.Absolute(), method, heard="echo")
    print(confide.audit.run(method, canary, epsilon=1.0, delta=1e-5, mu=0.27))

The claim is handed in as plain numbers: nothing here computes what a method is said to cost. An audit gives a lower
bound; it can refute a claim and never confirms one.
"""

from confide.audit.adversary import ADVERSARIES, Adversary
from confide.audit.canary import Canary, Coalition, family, worst_case
from confide.audit.coalitions import CoalitionAudit, attack_coalitions
from confide.audit.engine import Case, attack, run, trials
from confide.audit.result import AuditResult

__all__ = [
    "ADVERSARIES", "Adversary", "AuditResult", "Canary", "Case", "Coalition", "CoalitionAudit", "attack",
    "attack_coalitions", "family", "run", "trials", "worst_case",
]  # fmt: skip
