"""Figure 5 of the Huller paper: ten digits, each against the rest, beside LIBSVM.

Test error, training time and support vectors of the Huller after one and two passes, of the
averaged perceptron after one and ten, and of LIBSVM.
"""

import json
import time

import numpy as np
from matplotlib.figure import Figure

from benchmarks import digits
from benchmarks.pictures import PICTURES
from benchmarks.race import RESULTS, publish, table
from polyplane import HullerClassifier, KernelPerceptronClassifier

FILE = RESULTS / "huller.json"
RUNS = 5  # as in the paper
MACHINES = {
    "Huller x1": (HullerClassifier(gamma=digits.GAMMA, max_iter=1, n_sweeps="paper"), RUNS),
    "Huller x2": (HullerClassifier(gamma=digits.GAMMA, max_iter=2, n_sweeps="paper"), RUNS),
    "Huller x1, n_removal=4": (
        HullerClassifier(gamma=digits.GAMMA, max_iter=1, n_removal=4, n_sweeps="paper"),
        RUNS,
    ),
    "Huller x1, n_sweeps=10": (
        HullerClassifier(gamma=digits.GAMMA, max_iter=1, n_sweeps=10),
        RUNS,
    ),
    "perceptron x1": (KernelPerceptronClassifier(gamma=digits.GAMMA, max_iter=1), 3),
    "perceptron x10": (KernelPerceptronClassifier(gamma=digits.GAMMA, max_iter=10), 1),
}


def measure(machine, runs, digit, data):
    """Mean error, median seconds and mean number of vectors over so many seeds."""
    X, y, X_test, y_test = data
    errors, seconds, vectors = [], [], []
    for seed in range(runs):
        machine.set_params(random_state=seed)
        start = time.process_time()
        machine.fit(X, y == digit)
        seconds.append(time.process_time() - start)
        errors.append(100 * np.mean(machine.predict(X_test) != (y_test == digit)))
        vectors.append(machine.support_.size)
    return {
        "error": float(np.mean(errors)), "seconds": float(np.median(seconds)),
        "vectors": float(np.mean(vectors)),
    }  # fmt: skip


def picture(found):
    """The paper's four panels."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2)
    for name, of_digits in found.items():
        values = {
            key: [of_digits[d][key] for d in digits.DIGITS]
            for key in ("error", "seconds", "vectors")
        }
        panels[0, 0].plot(digits.DIGITS, values["error"], "o-", label=name)
        panels[0, 1].semilogy(digits.DIGITS, values["seconds"], "o-")
        panels[1, 0].plot(digits.DIGITS, values["vectors"], "o-")
        panels[1, 1].semilogy(values["vectors"], values["seconds"], "o")
    labels = (("digit", "test error %"), ("digit", "training seconds"),
              ("digit", "support vectors"), ("support vectors", "training seconds"))  # fmt: skip
    for panel, (x, y) in zip(panels.ravel(), labels, strict=True):
        panel.set(xlabel=x, ylabel=y)
        panel.grid(alpha=0.3)
    panels[0, 0].legend(frameon=False, fontsize="small")
    figure.savefig(PICTURES / "huller.svg", metadata={"Date": None})


def row(name, of_digits, solver):
    worst = max(of_digits[d]["error"] - solver[d]["error"] for d in digits.DIGITS)
    ratios = [solver[d]["seconds"] / of_digits[d]["seconds"] for d in digits.DIGITS]
    sizes = [of_digits[d]["vectors"] / solver[d]["vectors"] - 1 for d in digits.DIGITS]
    mean = {key: np.mean([of_digits[d][key] for d in digits.DIGITS])
            for key in ("error", "seconds", "vectors")}  # fmt: skip
    return [
        name, f"{mean['error']:.3f}", f"{worst:+.3f}", f"{mean['seconds']:.2f}",
        f"{min(ratios):.0f} to {max(ratios):.0f}", f"{mean['vectors']:.0f}",
        f"{100 * min(sizes):+.1f} to {100 * max(sizes):+.1f}",
    ]  # fmt: skip


def main():
    data = digits.load()
    X, y, _, _ = data
    for machine, _ in MACHINES.values():  # compile
        machine.fit(X[:500], y[:500] == 2)
    solver = {d: digits.libsvm(d) for d in digits.DIGITS}
    found = {"LIBSVM": solver}
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for digit in digits.DIGITS:
        for name, (machine, runs) in MACHINES.items():
            of_digits = kept.setdefault(name, {})
            if str(digit) not in of_digits:
                of_digits[str(digit)] = measure(machine, runs, digit, data)
                FILE.write_text(json.dumps(kept, indent=1))
                print(digit, name, of_digits[str(digit)], flush=True)
            found.setdefault(name, {})[digit] = of_digits[str(digit)]
    picture(found)
    by_digit = [
        [d, *(f"{found[name][d]['error']:.2f} ({found[name][d]['seconds']:.2f} s, "
              f"{found[name][d]['vectors']:.0f})" for name in found)]
        for d in digits.DIGITS
    ]  # fmt: skip
    header = ["machine", "mean error %", "most above LIBSVM", "mean seconds", "times faster",
              "mean vectors", "vectors against LIBSVM %"]  # fmt: skip
    publish(
        "huller",
        "The Huller on MNIST, each digit against the rest (Figure 5)",
        f"RBF kernel, gamma {digits.GAMMA}, pixels in [0, 1], 60,000 rows, one thread. LIBSVM is "
        "SVC(C=1000, cache_size=256), measured once and kept in libsvm_digits.json. All times are "
        "seconds of one processor. Huller: means of five runs; perceptron x1: of three, x10: one. "
        "What was measured before is kept in huller.json: delete it to start anew.",
        table(header, [row(name, of, solver) for name, of in found.items()]),
        "Test error % (seconds of training, support vectors):",
        table(["digit", *found], by_digit),
        "![Figure 5](../../docs/pictures/huller.svg)",
    )
