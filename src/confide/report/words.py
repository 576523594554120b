"""Privacy in words: for whoever must decide whether a number is small enough, and is no statistician."""

from __future__ import annotations

from confide.privacy import Guarantee, Label
from confide.report.markup import shown
from confide.report.spending import Spend

WHO = {
    "network": "someone who reads every message the parties ever send, and who knows every other row of the data",
    "collector": "the party that collects the labels, and who knows everything else",
}
WHAT = {"row": "one person's row", "label": "one person's label"}
MEANING = {
    Label.PROVEN: "Holds for every data set that fits the schema: the software enforces what the proof needs.",
    Label.ASSUMED: "As published. It rests on something that nobody enforces.",
    Label.REFUTED: "Evidence contradicts it. Do not rely on these numbers.",
    Label.NONE: "No protection is claimed.",
}
LIMITS = (
    "How many rows a party has, and whether a person is in the data at all: neighbouring data sets differ by replacing "
    "one row.",
    "Several rows of one person: g rows cost g times μ.",
    "When and how long the parties computed.",
)
BLIND = 0.001  # the chance of a blind guess among a thousand
ALARMS = 0.05


def sentences(spend: Spend) -> list[str]:
    """What the trade-off curve says, in the order of what one asks."""
    who, what = adversary(spend.kind[2]), WHAT[spend.unit]
    if not spend.finite:
        return [f"Nothing bounds what can be learned about {what}: {who} may find it out for certain."]
    coin = 100 * spend.success
    return [
        f"The adversary is {who}. Of {what} two values are possible, each as likely as the other; which one is true? "
        f"The best guess is right in at most {_of_hundred(coin)} cases. A coin is right in 50.",
        f"Allowed a false alarm in {100 * ALARMS:.0f} of 100 cases, the adversary finds at most "
        f"{_of_hundred(100 * spend.found(ALARMS))} true ones. Guessing blindly finds {100 * ALARMS:.0f}.",
        f"Asked to name the true one of 1,000 equally likely values, the adversary succeeds in at most "
        f"{_of_hundred(100 * spend.found(BLIND))} cases. A blind guess succeeds in 0.1.",
        verdict(spend.success),
    ]


def adversary(kind: str) -> str:
    """Who it is, in words; a coalition says so itself."""
    if kind.startswith("outsiders and any "):
        return f"{kind}, who pool all they know, and who know every other row of the data"
    return WHO.get(kind, f"an adversary of the kind “{kind}”")


def _of_hundred(value: float) -> str:
    return f"{value:.1f} of 100"


def verdict(success: float) -> str:
    """The same as a judgement. The bounds are ours: 0.2, 0.5 and 0.9 of what certainty would gain over a coin."""
    gain = 2 * success - 1
    if gain <= 0.2:
        return "That is little: an outcome of the run says almost nothing about any one person."
    if gain <= 0.5:
        return "That is noticeable: it can shift a suspicion, and cannot settle it."
    if gain <= 0.9:
        return "That is much: a well-informed adversary is far more often right than wrong. A smaller ε is advisable."
    return "That is nearly everything: at this ε a well-informed adversary is almost never wrong."


def headline(spend: Spend, simulated: bool) -> str:
    """One line: ε, δ, and for whom."""
    would = "would lose" if simulated else "lost"
    if not spend.finite:
        return f"No bound: {WHAT[spend.unit]} may be revealed entirely."
    return f"{WHAT[spend.unit].capitalize()} {would} at most ε = {shown(spend.epsilon)} at δ = {shown(spend.delta)}."


def promise(guarantee: Guarantee) -> str:
    """What the label means."""
    return MEANING[guarantee.label]
