"""
Error against the price of a prediction
=======================================

A model that is asked often should answer quickly. This example trains estimators of this library,
linear models and gradient boosting on the same 898 images of digits, and draws the error on the
other 899 images against the time of one prediction. The best models are at the lower left.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import polyplane as pp

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
X_many = np.tile(X_test, (10, 1))  # enough rows to take times

STEPS = {"alpha": 1e-3, "max_iter": 50, "random_state": 0}
ESTIMATORS = {
    "polyplane": pp.PolyplaneClassifier(random_state=0),
    "Pegasos": pp.PegasosClassifier(**STEPS),
    "MM": pp.MMClassifier(n_planes=4, init="kmeans", **STEPS),
    "AMM, one-vs-rest": pp.AMMClassifier(multi_class="ovr", **STEPS),
    "CPM, one-vs-one": pp.CPMClassifier(**STEPS),
    "Poly2": pp.Poly2Classifier(**STEPS),
    "LaSVM": pp.LaSVMClassifier(C=10, gamma=0.1, random_state=0),
    "Nyström": pp.NystromClassifier(gamma=0.05, random_state=0),
    "logistic regression": LogisticRegression(max_iter=1000),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=100, random_state=0),
}


def microseconds(model):
    """Return the time of one prediction among many: the shortest of five runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(X_many)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / len(X_many)


# %%
# Each estimator is fitted once. The first prediction compiles code and is not timed.

found = {}
for name, model in ESTIMATORS.items():
    error = 100 * np.mean(model.fit(X_train, y_train).predict(X_test) != y_test)
    found[name] = microseconds(model), error
    print(f"{name:20} {error:5.2f}% error, {found[name][0]:7.2f} µs a prediction")

# %%
# Both axes are logarithmic. Times depend on the computer; their order rarely does.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for name, (price, error) in found.items():
    is_ours = isinstance(ESTIMATORS[name], pp.PolyplaneClassifier)
    is_other = type(ESTIMATORS[name]).__module__.startswith("sklearn")
    colour = "#c44e2b" if is_ours else "#777777" if is_other else "#2f6f8f"
    ax.scatter(price, error, s=90, color=colour, marker="s" if is_other else "o", zorder=3)
    shift = (8, -15) if name == "Pegasos" else (8, 5)
    ax.annotate(name, (price, error), shift, textcoords="offset points", color=colour)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_yticks([1, 2, 3, 5, 10], ["1%", "2%", "3%", "5%", "10%"])
ax.minorticks_off()
ax.set_xlim(right=12 * max(price for price, _ in found.values()))
ax.set_xlabel("time of a prediction, µs")
ax.set_ylabel("error on unseen images")
ax.grid(alpha=0.3)
plt.show()
