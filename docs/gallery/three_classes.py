"""Three classes: a private multinomial model beside scikit-learn's.

Classes and ranges are public constants; nothing is learned from the rows before it is paid for.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import confide

rng = np.random.default_rng(0)
weights = np.array([[4.0, -2.0, 0.0], [-2.0, 4.0, 1.0], [0.0, 0.0, -3.0]])


def patients(n):
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, np.array(["home", "ward", "care"])[np.argmax(X @ weights.T + 0.5 * rng.gumbel(size=(n, 3)), axis=1)]


X, y = patients(6000)
test_X, test_y = patients(4000)
hospital = rng.choice(["mercy", "north", "lake"], size=6000)

free = LogisticRegression().fit(X, y).score(test_X, test_y)
print(f"scikit-learn on pooled rows, not private: {free:.3f}")
scores = {}
for epsilon in (0.5, 2.0, 8.0):
    model = confide.PrivateLogisticRegression(
        epsilon=epsilon, classes=["care", "home", "ward"], row_norm=1.0, random_state=0
    )
    model.fit(X, y, groups=hospital)
    scores[epsilon] = model.score(test_X, test_y)
    print(f"three hospitals, total ε={epsilon:g}: {scores[epsilon]:.3f}")
