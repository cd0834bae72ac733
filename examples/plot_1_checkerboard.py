"""
A checkerboard, plane by plane
==============================

No straight line separates the fields of a checkerboard. :class:`polyplane.GAMMClassifier` begins
with one hyperplane for each class and adds more while rows stream past: with a small probability,
the plane that a row is about to move is copied first, and the two copies part ways.

Each picture shows the model after more rows. Colours are the predicted classes, white lines are
the borders between the regions of single planes.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import polyplane as pp

FIELDS = 4  # along each side
STOPS = 500, 2_000, 8_000, 32_000, 128_000, 512_000  # rows learned


def board(n_rows, random):
    """Return points on the board, and which of the two colours is below each."""
    X = random.uniform(-1, 1, (n_rows, 2)).astype(np.float32)
    field = np.floor((X + 1) / 2 * FIELDS).astype(int)
    return X, field.sum(axis=1) % 2


random = np.random.default_rng(0)
X_test, y_test = board(10_000, random)
side = np.linspace(-1, 1, 400, dtype=np.float32)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

# %%
# A stream is learned with ``partial_fit``. The result does not depend on where it is cut.

model = pp.GAMMClassifier(alpha=1e-6, clone_decay=0.998, random_state=0)
colours = ListedColormap(["#2f6f8f", "#e0a458"])
figure, axes = plt.subplots(2, 3, figsize=(9, 6.6), layout="constrained")
learned = 0
for ax, stop in zip(axes.flat, STOPS, strict=True):
    model.partial_fit(*board(stop - learned, random), classes=[0, 1])
    learned = stop
    labels = model.predict(grid).reshape(400, 400)
    owner = model.assign(grid).reshape(400, 400)
    is_border = np.zeros((400, 400), bool)
    is_border[1:] |= owner[1:] != owner[:-1]
    is_border[:, 1:] |= owner[:, 1:] != owner[:, :-1]
    ax.imshow(labels, extent=(-1, 1, -1, 1), origin="lower", cmap=colours, vmin=0, vmax=1)
    lines = np.ma.masked_where(~is_border, is_border)
    ax.imshow(lines, extent=(-1, 1, -1, 1), origin="lower", cmap=ListedColormap(["white"]))
    error = 100 * np.mean(model.predict(X_test) != y_test)
    n_used = np.unique(owner).size
    ax.set_title(f"{stop:,} rows\n{n_used} planes in use, {error:.1f}% error", fontsize=10)
    ax.set_xticks([-1, 0, 1])
    ax.set_yticks([-1, 0, 1])
for ax in axes[-1]:
    ax.set_xlabel("first column")
for ax in axes[:, 0]:
    ax.set_ylabel("second column")
plt.show()
