"""
Planes created and pruned over a stream
=======================================

:class:`polyplane.AMMClassifier` learns from a stream in which classes appear that nobody
announced. Images of digits arrive row by row; at first there are only 0 and 1, and every 4,000
rows two more digits join. Each new class gets planes as it needs them, and planes that carry
little weight are pruned. With ``average=False`` predictions follow the latest planes instead of
the mean over the whole stream, which suits a stream that changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import polyplane as pp

STAGE = 4_000  # rows until two more digits join

X, y = load_digits(return_X_y=True)
X = X / 16
random = np.random.default_rng(0)
model = pp.AMMClassifier(
    alpha=1e-3, prune_interval=500, prune_budget=10.0, average=False, random_state=0
)

# %%
# Every image gets some noise of its own, and 50 rows are learned at a time. Before each
# chunk is learned it is predicted: the error is that of rows never seen before.

steps, errors, planes = [], [], []
for stage in range(1, 6):
    known = np.flatnonzero(y < 2 * stage)
    for _ in range(STAGE // 50):
        rows = random.choice(known, 50)
        X_new = np.clip(X[rows] + random.normal(0, 0.1, (50, 64)), 0, 1)
        if steps:
            errors.append(np.mean(model.predict(X_new) != y[rows]))
        else:
            errors.append(np.nan)
        model.partial_fit(X_new, y[rows])
        steps.append(model.n_steps_)
        planes.append([np.sum(model.plane_classes_ == digit) for digit in range(10)])

# %%
# The first picture shows the error of the last 500 rows, the second the planes of each digit. The
# third adds up the planes that were created and those that were pruned.

figure, (top, middle, bottom) = plt.subplots(
    3, 1, figsize=(8, 8), sharex=True, layout="constrained", height_ratios=(2, 3, 2)
)
smooth = [100 * np.nanmean(errors[max(0, k - 9) : k + 1]) for k in range(1, len(errors))]
top.plot(steps[1:], smooth, color="#c44e2b")
top.set_ylabel("error, %")
middle.stackplot(
    steps, np.transpose(planes), colors=plt.get_cmap("tab10").colors, labels=range(10), alpha=0.85
)
middle.set_ylabel("planes of each digit")
middle.legend(title="digit", ncols=2, loc="upper left", fontsize=8, title_fontsize=9)
changes = np.diff(np.sum(planes, axis=1), prepend=0)
for name, counts, colour in (
    ("created", np.maximum(changes, 0), "#2f6f8f"),
    ("pruned", np.maximum(-changes, 0), "#c44e2b"),
):
    bottom.step(steps, np.cumsum(counts), where="post", color=colour, label=name)
bottom.set_ylabel("planes since the start")
bottom.set_xlabel("rows learned")
bottom.legend(loc="upper left")
for ax in (top, middle, bottom):
    ax.set_xlim(0, 5 * STAGE)
    for stage in range(1, 5):
        ax.axvline(stage * STAGE, color="black", linewidth=0.8, linestyle=":")
for stage in range(5):
    centre, above = (stage + 0.5) * STAGE, top.get_xaxis_transform()
    text = f"+ {2 * stage} and {2 * stage + 1}"
    top.text(centre, 0.98, text, ha="center", va="top", transform=above, fontsize=9)
plt.show()
