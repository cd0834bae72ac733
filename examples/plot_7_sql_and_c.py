"""
A model in SQL and in C
=======================

A fitted model does not need Python. This example writes one as a SELECT statement, which runs in
SQLite, and as a C header, which a C compiler turns into a program. The three pictures are the
predictions of Python, of the database and of the program for the same points.
"""

import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons

import polyplane as pp

X, y = make_moons(2_000, noise=0.2, random_state=0)
model = pp.MMClassifier(n_planes=4, init="kmeans", alpha=1e-4, max_iter=100, random_state=0)
model.fit(X, y)
side = np.linspace(-2, 3, 150, dtype=np.float32)
grid = np.stack(np.meshgrid(side, side[30:-30] / 1.2), axis=-1)
points = grid.reshape(-1, 2)
in_python = model.predict(points)

# %%
# The statement reads a table with the columns of X. Each plane is a line of arithmetic in it.

statement = pp.to_sql(model, dialect="sqlite", table="points", keys="id")
print(statement[:1200], "...")

# %%
# The database predicts.

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE points (id INTEGER, x0 REAL, x1 REAL)")
rows = ((k, float(a), float(b)) for k, (a, b) in enumerate(points))
database.executemany("INSERT INTO points VALUES (?, ?, ?)", rows)
labels = {row[0]: row[1] for row in database.execute(statement)}
in_sql = np.array([labels[k] for k in range(len(points))])
print(f"{np.mean(in_sql == in_python):.2%} of the labels are those of Python.")

# %%
# The header has functions that take a row. A small program reads rows and prints labels.

header = pp.to_c(model, name="moons")
declarations = [line for line in header.splitlines() if line.startswith("static inline")]
print("\n".join(declarations))

MAIN = """
#include <stdio.h>
#include "moons.h"

int main(void) {
    float row[MOONS_N_FEATURES];
    while (scanf("%f %f", &row[0], &row[1]) == 2) puts(MOONS_CLASSES[moons_predict(row)]);
    return 0;
}
"""
compiler = shutil.which("cc")
if compiler is None:
    print("There is no C compiler here.")
    in_c = in_python
else:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "moons.h").write_text(header)
        (folder / "main.c").write_text(MAIN)
        program = folder / "predict"
        subprocess.run(
            [compiler, "-std=c99", "-O2", folder / "main.c", "-o", program, "-lm"], check=True
        )
        text = "\n".join(f"{a} {b}" for a, b in points)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        in_c = np.array(done.stdout.split(), dtype=in_python.dtype)
    print(f"{np.mean(in_c == in_python):.2%} of the labels are those of Python.")

# %%
# The same picture three times.

colours = ListedColormap(["#2f6f8f", "#e0a458"])
edges = (points[0, 0], points[-1, 0], points[0, 1], points[-1, 1])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, title, predicted in zip(
    axes, ("Python", "SQLite", "C"), (in_python, in_sql, in_c), strict=True
):
    image = predicted.reshape(grid.shape[:2])
    ax.imshow(image, extent=edges, origin="lower", cmap=colours, alpha=0.6, aspect="auto")
    ax.scatter(*X[::8].T, c=y[::8], cmap=colours, s=9, edgecolor="white", linewidth=0.3)
    ax.set_title(title)
    ax.set_xlabel("x0")
axes[0].set_ylabel("x1")
plt.show()
