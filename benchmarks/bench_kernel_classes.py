"""Ten digits at once on shared kernel blocks, and what the classifiers of all ten reach."""

import time

import numpy as np

from benchmarks import digits
from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import HullerClassifier, LaSVMClassifier

HELD_OUT = 10_000  # the last training rows choose gamma and C


def shared(data, n_passes):
    """Seconds of ten digits one by one and at once, and whether the models are the same."""
    X, y, _, _ = data
    options = {"gamma": digits.GAMMA, "max_iter": n_passes, "random_state": 0}
    seconds, alone = [], []
    for digit in digits.DIGITS:
        start = time.process_time()
        alone.append(HullerClassifier(**options).fit(X, y == digit))
        seconds.append(time.process_time() - start)
    start = time.process_time()
    together = HullerClassifier(multi_class="ovr", **options).fit(X, y)
    at_once = time.process_time() - start
    union = together.support_.size
    return [
        f"x{n_passes}", f"{sum(seconds):.1f}", f"{np.mean(seconds):.2f}", f"{at_once:.1f}",
        f"{at_once / np.mean(seconds):.1f}", sum(m.support_.size for m in alone), union,
    ]  # fmt: skip


def candidates():
    """Machines and settings, the choice of which is left to held-out rows."""
    for gamma in (0.01, 0.02):
        for kind in ("ovr", "ovo"):
            yield f"Huller x2 {kind}", HullerClassifier(gamma=gamma, max_iter=2, multi_class=kind)
            yield f"LaSVM {kind}", LaSVMClassifier(C=10.0, gamma=gamma, multi_class=kind)


def chosen(data):
    """Of each machine the gamma with the lowest error on held-out rows, fitted to all rows."""
    X, y, X_test, y_test = data
    tried = {}
    for name, machine in candidates():
        machine.set_params(random_state=0).fit(X[:-HELD_OUT], y[:-HELD_OUT])
        found = error(machine, X[-HELD_OUT:], y[-HELD_OUT:])
        print(name, machine.gamma, found, flush=True)
        tried.setdefault(name, []).append((found, machine))
    rows = []
    for name, of_machine in tried.items():
        held_out, machine = min(of_machine, key=lambda pair: pair[0])
        start = time.process_time()
        machine.fit(X, y)
        seconds = time.process_time() - start
        start = time.process_time()
        wrong = error(machine, X_test, y_test)
        per_row = 1e6 * (time.process_time() - start) / len(y_test)
        rows.append(
            [name, machine.gamma, f"{held_out:.2f}", f"{wrong:.2f}", f"{seconds:.1f}",
             machine.support_.size, f"{per_row:.0f}"]
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def main():
    data = digits.load()
    X, y, _, _ = data
    HullerClassifier(gamma=digits.GAMMA).fit(X[:500], y[:500])
    publish(
        "kernel_classes",
        "Ten digits on shared blocks of kernel values",
        f"The Huller on each digit against the rest, gamma {digits.GAMMA}, one thread: one fit "
        "after the other, and multi_class='ovr' in one fit. Each problem is the one that the "
        "digit alone would give, to the last bit (a test says so). All times are seconds of one "
        "processor.",
        table(
            ["passes", "one by one, s", "mean digit, s", "at once, s", "at once / one digit",
             "vectors, added up", "vectors, at once"],
            [shared(data, n_passes) for n_passes in (1, 2)],
        ),
        "Ten classes: gamma of 0.01 or 0.02 by the error on the last 10,000 training rows.",
        table(
            ["machine", "gamma", "held-out error %", "test error %", "seconds", "vectors",
             "µs a prediction"],
            chosen(data),
        ),
    )  # fmt: skip
