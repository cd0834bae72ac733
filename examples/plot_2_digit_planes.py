"""
What each plane of a digit sees
===============================

A class of :class:`polyplane.MMClassifier` is the maximum of several hyperplanes, and each plane
answers for some ways to write the digit. A plane has a weight for each pixel, so that it can be
drawn as an image: ink on a red pixel speaks for the digit, ink on a blue pixel against it. Below
each plane is the mean of the images for which it decides, which ``assign`` returns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import polyplane as pp

DIGITS = 1, 3, 4, 5, 7
SHOWN = 3  # planes of a digit, those that decide most often

X, y = load_digits(return_X_y=True)
model = pp.MMClassifier(n_planes=4, init="kmeans", alpha=1e-3, max_iter=50, random_state=0)
model.fit(X / 16, y)
assigned = model.assign(X / 16)

# %%
# The planes of a few digits, the most frequent ones first.

figure, axes = plt.subplots(2 * SHOWN, len(DIGITS), figsize=(8, 9.6), layout="constrained")
n_rows = np.bincount(assigned, minlength=len(model.plane_classes_))
for column, digit in enumerate(DIGITS):
    planes = np.flatnonzero(model.plane_classes_ == digit)
    planes = planes[np.argsort(-n_rows[planes])][:SHOWN]
    for k, plane in enumerate(planes):
        weights = model.planes_[plane].reshape(8, 8)
        limit = np.abs(weights).max()
        above, below = axes[2 * k : 2 * k + 2, column]
        above.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="bicubic")
        below.imshow(X[assigned == plane].mean(axis=0).reshape(8, 8), cmap="gray_r")
        above.set_title(f"digit {digit}, plane {k + 1}", fontsize=10)
        below.set_title(f"decides {n_rows[plane]} images", fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()
