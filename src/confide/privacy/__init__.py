"""Privacy: events (what was released), accounting (its cost), calibration (the inverse), labels."""

from confide.privacy import published
from confide.privacy.accounting import (
    Total,
    delta,
    distinguish,
    epsilon,
    gaussian_equivalent,
    mu,
    reconstruct,
    totals,
    trade_off,
)
from confide.privacy.calibration import SHAPES, calibrate, mu_for, noise_shape
from confide.privacy.events import (
    EVENT_TYPES,
    ZCDP,
    Event,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
)
from confide.privacy.labels import Guarantee, Label
from confide.privacy.mechanisms import randomize_labels

__all__ = [
    "EVENT_TYPES",
    "SHAPES",
    "ZCDP",
    "Event",
    "Free",
    "Gaussian",
    "Guarantee",
    "Label",
    "ObjectivePerturbation",
    "PureDP",
    "RadialNoise",
    "RandomizedResponse",
    "Total",
    "Unbounded",
    "calibrate",
    "delta",
    "distinguish",
    "epsilon",
    "gaussian_equivalent",
    "mu",
    "mu_for",
    "noise_shape",
    "published",
    "randomize_labels",
    "reconstruct",
    "totals",
    "trade_off",
]
