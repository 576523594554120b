"""scikit-learn's own checks, every one of them, with one expected failure.

A row of weight 2 is not two rows: noise follows from the public number of rows, and no private method can tell weights
from it.
"""

from functools import partial

from sklearn.utils.estimator_checks import parametrize_with_checks

import confide

ESTIMATORS = [
    confide.PrivateLogisticRegression, confide.PrivateLinearSVC, confide.PrivateRidge, confide.PrivateLasso,
    confide.PrivateElasticNet, confide.PrivateHuberRegressor, confide.PrivateQuantileRegressor,
    confide.FunctionalQuantileRegressor,
]  # fmt: skip


def test_every_estimator_is_checked():
    assert {kind.__name__ for kind in ESTIMATORS} == {n for n in confide.__all__ if n.startswith(("Private", "Func"))}


REPEATED = "the number of rows is public, and noise follows from it"
OURS = {
    **{f"check_sample_weight_equivalence_on_{form}_data": REPEATED for form in ("dense", "sparse")},
    "check_all_zero_sample_weights_error": "weights are private: a fit that stops for them would tell that all are 0",
}


FIRST = (confide.PrivateLogisticRegression, confide.PrivateRidge, confide.FunctionalQuantileRegressor)  # of each kind
checks = partial(parametrize_with_checks, expected_failed_checks=lambda estimator: OURS)


@checks([kind() for kind in FIRST])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@checks([*(kind() for kind in ESTIMATORS if kind not in FIRST), confide.FunctionalQuantileRegressor(basis="fpca")])
def test_scikit_learn_checks_of_their_siblings(estimator, check):
    check(estimator)
