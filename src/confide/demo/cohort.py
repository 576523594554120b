"""A generated cohort: five hospitals of very unequal size and case mix, and who was readmitted within 30 days.

    from confide.demo import cohort as data
    cohort = data.cohort(seed=0)
    problem = confide.Problem(cohort.shards, confide.losses.Logistic(), weighting="rows", intercept=True)

Patients are invented. What is real is how they are encoded: every feature has a range declared in `SCHEMA`, agreed by
the parties before anyone looks at a row. A scale learned from the data would be a release nobody pays for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.shards import Shards

Array = NDArray[np.float64]
ROW_NORM = 1.0  # public bound on a patient's encoded row: what clipping enforces and sensitivities count with
TEST_PATIENTS = 4_000


class Feature(NamedTuple):
    """A column and its public range; values outside it count as its nearer end."""

    name: str
    unit: str
    low: float
    high: float


SCHEMA = (
    Feature("age", "years", 18, 98),
    Feature("bmi", "kg/m²", 14, 46),
    Feature("systolic", "mmHg", 80, 200),
    Feature("hba1c", "%", 3, 11),
    Feature("ldl", "mmol/l", 0.5, 6.5),
    Feature("egfr", "ml/min", 5, 135),
    Feature("haemoglobin", "g/dl", 6, 19),
    Feature("stay", "days", 0, 16),
    Feature("admissions", "last year", 0, 6),
    Feature("medicines", "count", 0, 20),
    Feature("smoker", "yes/no", 0, 1),
    Feature("emergency", "yes/no", 0, 1),
)


class Hospital(NamedTuple):
    """Share of the patients, and the case mix they are drawn from."""

    name: str
    share: float
    age: float  # mean, years
    spread: float  # of age, years
    frailty: float  # mean, in standard deviations of the region
    diabetes: float  # prevalence
    smoker: float
    emergency: float


HOSPITALS = (
    Hospital("Mercy", 0.47, 70, 10, 0.0, 0.20, 0.18, 0.40),  # general
    Hospital("Northside", 0.29, 43, 11, -0.2, 0.06, 0.34, 0.95),  # trauma centre
    Hospital("St. Agnes", 0.155, 81, 7, 0.3, 0.22, 0.06, 0.25),  # geriatric
    Hospital("Lakeview", 0.06, 71, 8, 0.2, 0.96, 0.20, 0.06),  # diabetes and kidneys
    Hospital("Hillcrest", 0.025, 35, 9, -0.2, 0.05, 0.42, 0.12),  # young commuters
)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Encoded rows in [-1, 1], y = 1 for a readmission and -1 for none, and each row's hospital."""

    X: Array
    y: Array
    hospital: NDArray[np.str_]
    test_X: Array
    test_y: Array
    features: tuple[str, ...] = tuple(f.name for f in SCHEMA)

    @cached_property
    def shards(self) -> Shards:
        """The training rows by hospital, none longer than ROW_NORM."""
        return Shards.from_groups(self.X, self.y, self.hospital).clip_rows(ROW_NORM)

    @cached_property
    def test(self) -> tuple[Array, Array]:
        """The public test set, encoded and clipped as the training rows are."""
        whole = np.full(len(self.test_y), "public")
        return Shards.from_groups(self.test_X, self.test_y, whole).clip_rows(ROW_NORM).X, self.test_y


def cohort(seed: int = 0, patients: int = 20_000) -> Cohort:
    """`patients` patients by hospital, and 4,000 more, as many from each, who agreed to be a public test set."""
    parts, tests = raw(seed, patients)
    names = np.repeat([h.name for h in HOSPITALS], [len(y) for _, y in parts])
    return Cohort(
        encode(np.vstack([X for X, _ in parts])), np.concatenate([y for _, y in parts]), names,
        encode(np.vstack([X for X, _ in tests])), np.concatenate([y for _, y in tests]),
    )  # fmt: skip


def raw(seed: int, patients: int) -> tuple[list[tuple[Array, Array]], list[tuple[Array, Array]]]:
    """The cohort before it is encoded: (X, y) of each hospital, and of the public test set's parts."""
    if isinstance(patients, bool) or int(patients) != patients or patients < 200:
        raise ConfideError(f"patients={patients}: must be a whole number of at least 200, for five hospitals")
    rng = np.random.default_rng(seed)
    cuts = np.round(np.cumsum([h.share for h in HOSPITALS]) * patients).astype(int)
    parts = [draw(rng, h, n) for h, n in zip(HOSPITALS, np.diff(cuts, prepend=0), strict=True)]
    tests = [draw(rng, h, TEST_PATIENTS // len(HOSPITALS)) for h in HOSPITALS]
    return parts, tests


def encode(X: Any) -> Array:
    """Raw columns in the order of `SCHEMA`, scaled from their declared ranges to [-1, 1] and clipped to it."""
    low, high = np.array([(f.low, f.high) for f in SCHEMA], float).T
    return np.asarray(np.clip(2 * (np.asarray(X, float) - low) / (high - low) - 1, -1, 1))


def draw(rng: np.random.Generator, h: Hospital, n: int) -> tuple[Array, Array]:
    """Raw features (n, 12) and outcomes (n,) of n patients of one hospital."""
    age = np.clip(rng.normal(h.age, h.spread, n), 18, 104)
    old = (age - 60) / 15
    frail = rng.normal(h.frailty, 1.0, n)
    diabetic = rng.random(n) < h.diabetes
    smoker = rng.random(n) < h.smoker
    emergency = rng.random(n) < h.emergency
    bmi = rng.normal(27 + 3.5 * diabetic - 0.8 * old - 0.5 * frail, 4.5)
    systolic = rng.normal(128 + 7 * old + 6 * diabetic - 3 * frail, 17)
    hba1c = rng.normal(5.4 + 2.3 * diabetic + 0.1 * old, 0.4 + 0.9 * diabetic)
    ldl = rng.normal(3.2 + 0.3 * smoker - 0.5 * diabetic, 0.9)
    egfr = rng.normal(88 - 13 * old - 12 * diabetic - 9 * frail, 16)
    haemoglobin = rng.normal(13.6 - 0.5 * old - 0.7 * frail + 0.3 * smoker, 1.5)
    stay = rng.gamma(2.0, np.exp(0.75 + 0.12 * old + 0.25 * frail + 0.2 * emergency))
    admissions = rng.poisson(np.exp(-0.3 + 0.55 * frail + 0.1 * old))
    medicines = rng.poisson(np.exp(1.6 + 0.15 * old + 0.2 * frail + 0.3 * diabetic))
    # In the old, low blood pressure, weight and cholesterol are the warning, in the young high ones; sugar hurts at
    # either end. So the best line for one kind of patient is not the best for all.
    risk = (
        -4.0 + 0.9 * old + 2.2 * emergency + 1.3 * smoker + 1.0 * np.minimum(admissions, 5)
        + 0.35 * (stay - 4) - 0.55 * (haemoglobin - 13.5) - 0.02 * (egfr - 85) + 0.08 * (medicines - 6)
        + 0.9 * np.abs(hba1c - 6.0)
        - old * (0.05 * (systolic - 132) + 0.15 * (bmi - 27) + 1.2 * (ldl - 3.1))
    )  # fmt: skip
    y = np.where(risk + rng.logistic(0.0, 1.0, n) > 0, 1.0, -1.0)
    columns = [age, bmi, systolic, hba1c, ldl, egfr, haemoglobin, stay, admissions, medicines, smoker, emergency]
    return np.column_stack(columns).astype(float), y
