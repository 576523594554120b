"""Coalitions against a private sum: outsiders, one colluder, two, …, each against the claim that is made for it.

    found = attack_coalitions({0: [case], 1: [case], 2: [case]}, delta=1e-5)
    print(found)

Colluders know every row but one, pool their own rows, noise and messages, say what they like, and subtract what they
know: what is left is the sum of the other parties' messages. The confidence is that of all lines together: each is
tested at its share of the error level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.special import ndtr

from confide._version import __version__
from confide.audit import bounds
from confide.audit.engine import Case, attack
from confide.audit.result import INK, POOLED, WARNING, AuditResult, made_room, wrap, write_json
from confide.errors import ConfideError
from confide.files.pictures import new_figure, write_picture
from confide.files.plain import without_infinity


@dataclass(frozen=True, eq=False)
class CoalitionAudit:
    """What coalitions found, from the smallest to the largest.

    results       by the number of colluders; 0: outsiders alone
    parties       of the network, K
    collusion     how many colluders the method's noise is made for, c
    confidence    that every line's lower bound is one, between 0 and 1
    """

    results: Mapping[int, AuditResult]
    parties: int
    collusion: int
    confidence: float

    @property
    def refuted(self) -> bool:
        """Whether any line's lower bound exceeds its claim."""
        return any(result.refuted for result in self.results.values())

    @property
    def verdict(self) -> str:
        """One line; it never says that a claim is true."""
        sure = f"at confidence {100 * self.confidence:g} % over all lines"
        broken = [str(j) for j, result in self.results.items() if result.refuted]
        if broken:
            return f"refuted: the claim against {', '.join(broken)} colluders, {sure}"
        lines = f"none of {len(self.results)} claims" if len(self.results) > 1 else "the claim is not"
        return f"not contradicted: {lines} {sure}"

    def share(self, colluders: int) -> float:
        """How much of its claim an attack proved: of μ where it is Gaussian, else of ε."""
        result = self.results[colluders]
        if result.mu is not None and result.mu_low is not None:
            return result.mu_low / result.mu
        return result.epsilon_low / result.epsilon

    @property
    def could_see(self) -> list[str]:
        """What this audit would have noticed, in sentences: what every line would have, once."""
        who = f"outsiders, with {', '.join(map(str, self.results))} of {self.parties} parties: {POOLED}"
        return [who, *_union(result.could_see[1:] for result in self.results.values())]

    @property
    def could_not_see(self) -> list[str]:
        """What would have escaped it, in sentences."""
        left = [j for j in range(self.parties) if j not in self.results]
        sizes = [f"coalitions of {', '.join(map(str, left))} colluders"] if left else []
        return [*sizes, *_union(result.could_not_see for result in self.results.values())]

    def __str__(self) -> str:
        first = next(iter(self.results.values()))
        head = (
            f"{first.algorithm}, {first.loss}: {self.parties} parties, noise for at most {self.collusion} who collude; "
            f"δ={first.delta:g}, {first.repetitions:,} repetitions each"
        )
        table = ["  colluders  claim: ε       μ  proved: ε ≥     μ ≥  share  a perfect attack: μ ≥"]
        for j, one in self.results.items():
            mu, low = ("–" if v is None else f"{v:.3f}" for v in (one.mu, one.mu_low))
            mark = "  refuted" if one.refuted else ""
            proved = f"{one.epsilon_low:12.3g} {low:>7} {100 * self.share(j):4.0f} %"
            best = "" if one.mu is None else f"{perfect(one):22.3f}"
            table.append(f"  {j:9} {one.epsilon:9.3g} {mu:>7} {proved}{best}{mark}")
        attacks = [f"{j} colluder{'s' * (j != 1)}: {one.canary}; {one.adversary}; {one.distinguisher}"
                   for j, one in self.results.items()]  # fmt: skip
        return "\n".join([
            self.verdict, wrap(head, "  "), *table,
            "the best attack of each", *(wrap(line, "  - ") for line in attacks),
            "what it could have seen", *(wrap(line, "  - ") for line in self.could_see),
            "what it could not have seen", *(wrap(line, "  - ") for line in self.could_not_see),
        ])  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Everything but the scores; one document of `AuditResult` per line."""
        lines = []
        for j, one in self.results.items():
            line = {"colluders": j, "share": without_infinity(self.share(j)), **one.to_json()}
            line["mu_perfect"] = None if one.mu is None else perfect(one)
            del line["scores"]
            lines.append(line)
        return {
            "version": __version__, "verdict": self.verdict, "refuted": self.refuted, "parties": self.parties,
            "collusion": self.collusion, "confidence": self.confidence, "coalitions": lines,
            "could_see": self.could_see, "could_not_see": self.could_not_see,
        }  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Write JSON, whole or not at all."""
        return write_json(path, self.to_json())

    def draw(self, path: str | Path) -> Path:
        """Draw what is claimed against each coalition, and what was proved."""
        figure = new_figure(7, 4.6)
        ax = figure.subplots()
        gaussian = all(one.mu is not None for one in self.results.values())
        names = list(self.results)
        claims: Any = [one.mu if gaussian else one.epsilon for one in self.results.values()]
        lows: Any = [one.mu_low if gaussian else one.epsilon_low for one in self.results.values()]
        ax.plot(names, claims, "_", color=WARNING, markersize=26, markeredgewidth=2, label="claimed: at most")
        ax.bar(names, lows, color=INK, alpha=0.55, width=0.55, label="proved: at least")
        ax.set(xlabel=f"colluders among {self.parties} parties", ylabel="μ" if gaussian else "ε", ylim=(0, None))
        ax.set_xticks(names)
        ax.axvline(self.collusion, color=INK, linewidth=0.8, linestyle=":", label="for whom the noise is made")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="upper left")
        figure.suptitle(self.verdict, color=WARNING if self.refuted else INK, fontsize=10)
        return write_picture(made_room(path), figure)


def perfect(result: AuditResult) -> float:
    """About the μ that as many repetitions prove where the claim is exactly spent: a best guess errs in Φ(-μ/2)."""
    assert result.mu is not None
    errors = round(result.repetitions * float(ndtr(-0.5 * result.mu)))
    return float(bounds.mu_from_accuracy(errors, errors, result.repetitions, 1 - result.confidence))


def attack_coalitions(
    cases: Mapping[int, Sequence[Case]], *, delta: float, repetitions: int = 4000, confidence: float = 0.95,
    seed: int = 0, progress: bool = False,
) -> CoalitionAudit:  # fmt: skip
    """Attack by so many colluders each, every one against the claim in its cases; their canaries name the colluders."""
    if not cases:
        raise ConfideError("no coalition: name at least one number of colluders")
    share = 1 - (1 - confidence) / len(cases)
    results = {}
    for colluders, mine in sorted(cases.items()):
        for found in (canary.coalition(case.algorithm) for case in mine for canary in case.canaries):
            if found is None or found.colluders != colluders:
                raise ConfideError(f"{colluders} colluders: a canary has {found}; make it by Canary.colluding")
        results[colluders] = attack(mine, delta=delta, repetitions=repetitions, confidence=share, seed=seed,
                                    progress=progress)  # fmt: skip
    first = next(iter(cases.values()))[0]
    made_for = first.algorithm.colluders(first.canaries[0].public(first.algorithm))  # type: ignore[attr-defined]
    return CoalitionAudit(results, first.canaries[0].graph.size, made_for, confidence)


def _union(lists: Iterable[list[str]]) -> list[str]:
    """What any of them says, once."""
    return list(dict.fromkeys(sentence for one in lists for sentence in one))
