"""
Training on a cluster
=====================

:func:`polyplane.backends.dask_cluster.fit` trains on the workers of a Dask cluster. In each round
every worker learns from its own partitions of the rows, starting with the planes that all share;
then the planes are joined. Here the cluster is two workers on this computer, and the rows are
images of digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import polyplane as pp
from polyplane.backends import dask_cluster

ROUNDS = 1, 2, 3, 5, 8, 12, 20

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
parts = [delayed((X_train[k::4], y_train[k::4])) for k in range(4)]  # or files, or Dask arrays

# %%
# The cluster's model is compared with one that a single process trained in as many passes.

errors = {"two workers": [], "one process": []}
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
with cluster, Client(cluster) as client:
    for rounds in ROUNDS:
        shared = pp.MMClassifier(n_planes=4, alpha=1e-3, random_state=0)
        dask_cluster.fit(shared, parts, client=client, rounds=rounds)
        alone = pp.MMClassifier(n_planes=4, alpha=1e-3, max_iter=rounds, random_state=0)
        alone.fit(X_train, y_train)
        for name, model in (("two workers", shared), ("one process", alone)):
            errors[name].append(100 * np.mean(model.predict(X_test) != y_test))

# %%
# The model of the cluster is an estimator like any other. Two workers need more passes than one
# process for the same error, since each sees only a part of the rows between two joins; what they
# save is time and memory per computer.

print(shared)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "s--"), strict=True):
    ax.plot(ROUNDS, values, style, color="#c44e2b" if style == "o-" else "#2f6f8f", label=name)
ax.set_xticks(ROUNDS)
ax.set_xlabel("passes over the rows")
ax.set_ylabel("error on unseen images, %")
ax.set_ylim(bottom=0)
ax.grid(alpha=0.3)
ax.legend()
plt.show()
