"""A grid search that is paid for.

Trying a parameter on private rows is a release. With a ledger every fit of the search is charged, two folds for each
candidate and the final one, and the search stops where the budget ends. The score of a fold is computed from private
rows as well: it stays with who runs the search, and the chosen value alone is published.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV

import confide
from confide.privacy.ledger import Ledger

rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(2000, 3))
y = 50 + 30 * X[:, 0] - 10 * X[:, 1] + 5 * rng.normal(size=2000)
ledger = Ledger("ledger.sqlite")
ledger.open_population("ward-7", epsilon=3.0, delta=1e-5)

model = confide.PrivateRidge(
    epsilon=1.0, target_range=(0, 100), row_norm=1.0, ledger=ledger, population="ward-7", rounds=20
)
search = GridSearchCV(model, {"penalty_strength": [0.0, 1.0]}, cv=2).fit(X, y)
print(f"chosen: penalty_strength={search.best_params_['penalty_strength']:g}")
print(f"the final fit alone: ε={search.best_estimator_.privacy_.spent:.3f}")
print(f"search and fit, {len(ledger.entries('ward-7'))} entries: ε={ledger.spent('ward-7'):.3f} of 3")
