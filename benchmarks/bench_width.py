"""Steps of one model of sixteen planes in matrices of several widths: why models train apart."""

import numpy as np
from sklearn.utils import check_random_state

from benchmarks.race import publish, race, table
from polyplane.engine.planes.planes import resized, with_classes, with_planes, zero_planes
from polyplane.engine.rows.storage import csr_rows
from polyplane.engine.steps.polytope import PolytopeRule, new_tally, polytope_epoch
from polyplane.engine.targets import Targets
from tests.real_data import mnist

WIDTHS = (16, 32, 720, 1440)  # alone; 45 pairs with one side; with both


def main():
    X, y, _, _ = mnist()
    rows = csr_rows(X, 1.0)
    labels, codes = (y == 2).astype(np.int32), np.arange(2, dtype=np.int32)
    targets = Targets(labels, codes, np.empty(0, np.float32))
    order = check_random_state(0).permutation(len(y)).astype(np.int32)
    noise = check_random_state(1).normal(size=(16, 785)).astype(np.float32) / 1_000
    start = with_planes(with_classes(zero_planes(784, True), 2, 0), np.ones(16, int), noise)

    def job(width):
        planes, tally = resized(start, 785, width), new_tally(width)
        chosen, t = np.full(len(y), -1, np.int32), [0]

        def epoch():
            rule = PolytopeRule(1e-4, 3.6)
            t[0] = polytope_epoch(rows, targets, order, planes, tally, rule, chosen, t[0])

        return epoch

    seconds = race({width: job(width) for width in WIDTHS}, 9)
    cells = [
        [width, f"{1e6 * s / len(y):.3f}", f"{s / seconds[16]:.2f}"] for width, s in seconds.items()
    ]
    publish(
        "width",
        "One model in a matrix of many lanes",
        "Microseconds a step of CPM with 16 planes, one side, MNIST 2-vs-rest, median of 9 "
        "interleaved epochs; the other lanes of the matrix are never touched.",
        table(["lanes", "µs a step", "beside 16 lanes"], cells),
    )
