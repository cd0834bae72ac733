"""
Curves of a table's columns
===========================

With one plane for each class and ``columns="fine"``, :class:`polyplane.SoftPlanesClassifier` is
additive: the log-odds of a class are a sum of curves, one along each column. Such a model can be
read from its curves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import polyplane as pp

SHOWN = 6  # columns, the most important first

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
model = pp.SoftPlanesClassifier(n_planes=1, columns="fine", random_state=0).fit(X, y)
found = model.explain(X, reference=X)
columns = np.argsort(-found.importances)[:SHOWN]

# %%
# A curve shows how the log-odds of *malignant* change along a column while all others stay at
# their medians. The ticks below the curves are the rows: red is malignant, blue benign.

figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained", sharey=True)
middle = X.median()
for ax, column in zip(axes.flat, columns, strict=True):
    name = X.columns[column]
    low, high = X[name].quantile([0.01, 0.99])
    along = np.linspace(low, high, 200)
    rows = X.iloc[[0] * 200].assign(**{other: middle[other] for other in X.columns})
    rows[name] = along
    log_odds = model.decision_function(rows)  # of the second class, malignant
    ax.axhline(0, color="#999999", linewidth=0.8)
    ax.plot(along, log_odds - np.median(log_odds), color="#333333", linewidth=2)
    for label, colour, height in (("malignant", "#c44e2b", 0.06), ("benign", "#2f6f8f", 0.02)):
        values = X[name][(y == label) & X[name].between(low, high)]
        above = ax.get_xaxis_transform()
        ax.plot(values, np.full(values.size, height), "|", color=colour, transform=above, alpha=0.3)
    ax.set_xlabel(name)
    ax.grid(alpha=0.2)
for ax in axes[:, 0]:
    ax.set_ylabel("log-odds of malignant")
plt.show()
