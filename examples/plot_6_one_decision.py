"""
An explanation of one decision
==============================

Estimators of planes are sums over columns wherever they decide. ``explain`` therefore splits a
decision among the columns exactly, without sampling and without a second model. ``changes`` names
the smallest change of one column that changes the prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import polyplane as pp

SHOWN = 9  # columns by name; the others are added up

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
model = pp.PolyplaneClassifier(random_state=0).fit(X, y)

# %%
# The row whose decision is closest:

found = model.explain(X, reference=X)
row = int(found.lead.argmin())
winner, rival = found.winner[row], found.runner_up[row]
print(f"Row {row} is called {winner}; the probability is {model.predict_proba(X)[row].max():.2f}.")
(change,) = model.explain(X.iloc[[row]], reference=X).changes()
if change is not None:
    print(
        f"It would be {rival} if '{change.name}' were {change.new:.4g} instead of {change.old:.4g}."
    )

# %%
# The picture begins with the mean row of the data and adds one column after the other. It ends
# with the score of this row: above zero the prediction is the class that was printed.

order = np.argsort(-np.abs(found.contributions[row]))
names = [f"{X.columns[k]} = {X.iloc[row, k]:.4g}" for k in order[:SHOWN]]
parts = [*found.contributions[row][order[:SHOWN]], found.contributions[row][order[SHOWN:]].sum()]
names = ["mean row", *names, f"{len(order) - SHOWN} other columns"]
parts = np.array([found.base[row], *parts])
ends = np.cumsum(parts)

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for k, (part, end) in enumerate(zip(parts, ends, strict=True)):
    colour = "#c44e2b" if part > 0 else "#2f6f8f"
    ax.barh(k, part, left=end - part, color=colour, height=0.65)
    place = max(end, end - part) + 0.02
    ax.text(place, k, f"{part:+.2f}", va="center", fontsize=9, color=colour)
    if k + 1 < len(parts):
        ax.plot([end, end], [k - 0.33, k + 1.33], color="#777777", linewidth=0.8)
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(range(len(names)), names)
ax.invert_yaxis()
ax.set_xlim(min(0, ends.min()) - 0.08, ends.max() + 0.15)
ax.set_xlabel(f"score of {winner} minus score of {rival}")
plt.show()
