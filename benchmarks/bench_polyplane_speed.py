"""Steps and predictions of PolyplaneClassifier beside AMM's; a log-sum-exp beside a maximum."""

import numpy as np

from benchmarks import sets
from benchmarks.race import publish, race, table
from polyplane import AMMClassifier, PolyplaneClassifier
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import dense_rows
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import FinishedPlanes, record_of

EPOCHS = 10
SET = {
    "start_scale": 3.0, "step_size": 0.3, "columns": "plain", "init": "subset", "search": False,
    "max_iter": EPOCHS, "compress": False, "random_state": 0,
}  # fmt: skip


def steps():
    """Microseconds a step, everything that `fit` does included."""
    rows = []
    for name in ("magic04", "covtype, 2 or not", "ijcnn1", "pendigits"):
        X, y, _, _ = sets.load(name)
        X = np.ascontiguousarray((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9))
        jobs = {
            "AMM": AMMClassifier(max_iter=EPOCHS, random_state=0),
            "16": PolyplaneClassifier(n_planes=16, **SET),
            "64": PolyplaneClassifier(n_planes=64, **SET),
        }
        found = race({k: lambda m=m, X=X, y=y: m.fit(X, y) for k, m in jobs.items()}, 5)
        micro = {k: 1e6 * seconds / (EPOCHS * len(y)) for k, seconds in found.items()}
        rows.append(
            [name, f"{micro['AMM']:.2f} ({jobs['AMM'].n_planes_})"]
            + [f"{micro[k]:.2f} ({micro[k] / micro['AMM']:.1f}x)" for k in ("16", "64")]
        )
    return table(["data", "AMM µs (planes)", "16 planes a class", "64 planes a class"], rows)


def predictions():
    """Microseconds a row of 50 dense columns by 128 planes of two classes, one thread."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20_000, 50)).astype(np.float32)
    owner = np.repeat([0, 1], 64).astype(np.int32)
    rows, order = dense_rows(X, 1.0), in_place(len(X))
    out = []
    for spread in (0.1, 1.0):
        sums = (spread * generator.normal(size=(51, 128))).astype(np.float32)
        planes = FinishedPlanes(sums, owner, np.ones(128, np.float32))
        ranks = np.arange(2, dtype=np.int32)
        hard, soft = (
            record_of([[planes]], Decomposition("joint", "vote", ranks), -np.inf, is_soft)
            for is_soft in (False, True)
        )
        jobs = {
            "maximum": lambda r=hard: r.classes_of(rows, order),
            "log-sum-exp": lambda r=soft: r.classes_of(rows, order),
            "its class scores": lambda r=soft: r.class_scores(rows, order),
        }
        micro = {name: 1e6 * s / len(X) for name, s in race(jobs, 31).items()}
        ratio = micro["log-sum-exp"] / micro["maximum"]
        out.append([spread, *(f"{m:.3f}" for m in micro.values()), f"{ratio:.2f}"])
    header = ["deviation of the weights", "maximum", "log-sum-exp", "its class scores", "ratio"]
    return table(header, out)


def main():
    publish(
        "polyplane_speed",
        "Steps and predictions of PolyplaneClassifier",
        f"Steps: `fit` of {EPOCHS} epochs with all settings given, medians of five, "
        "interleaved; what remains after AMM's growth is in parentheses.",
        steps(),
        "Predictions of 128 planes of two classes on 50 dense float32 columns, µs a row, one "
        "thread, medians of 31; the larger the weights, the more rows the maximum decides.",
        predictions(),
    )
