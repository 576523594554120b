"""scikit-learn's own checks, every one of them, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import confide

ESTIMATORS = [
    confide.PrivateLogisticRegression, confide.PrivateLinearSVC, confide.PrivateRidge, confide.PrivateLasso,
    confide.PrivateElasticNet, confide.PrivateHuberRegressor, confide.PrivateQuantileRegressor,
    confide.FunctionalQuantileRegressor,
]  # fmt: skip


def test_every_estimator_is_checked():
    assert {kind.__name__ for kind in ESTIMATORS} == {n for n in confide.__all__ if n.startswith(("Private", "Func"))}


@parametrize_with_checks([*(kind() for kind in ESTIMATORS), confide.FunctionalQuantileRegressor(basis="fpca")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
