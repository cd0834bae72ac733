"""PolyplaneClassifier with its defaults on every data set and raw table, beside all rivals.

Rivals are those of `bench_peers` (linear and RBF-SVM tuned, boosting of scikit-learn) and of
`bench_boosters` (LightGBM, XGBoost, CatBoost with their defaults).
"""

import importlib.util
import json
import sys
import time

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks import bench_boosters, bench_peers, sets, tables
from benchmarks.race import RESULTS, publish, table
from benchmarks.tuning import error, spread
from polyplane import PolyplaneClassifier

SEEDS = range(5)
CLOSE, NEAR = 0.1, 0.5  # points
FILE = RESULTS / "polyplane.json"  # what was measured, so that a run can go on


def data_of(name, seed):
    """Of small tables each seed has a fold of its own."""
    if name not in tables.TABLES:
        return sets.load(name)
    return tables.frames(name, seed % tables.TABLES[name].n_folds)


def seconds_of_lightgbm(name, seed, is_taken):
    """A fit with 400 trees right after ours, where LightGBM is installed and takes the set."""
    if not is_taken:
        return []
    X, y, _, _ = bench_boosters.data_of(name, "LightGBM 400", seed % n_folds_of(name))
    start = time.perf_counter()
    bench_boosters.lightgbm(400).fit(X, y)
    return [time.perf_counter() - start]


def n_folds_of(name):
    return tables.TABLES[name].n_folds if name in tables.TABLES else 1


def measure(name, is_taken):
    """Errors, losses, planes, seconds of fits, microseconds of a prediction, what was expected."""
    names = "errors", "losses", "aucs", "planes", "seconds", "lightgbm", "recipes", "expected"
    found = {one: [] for one in names}
    for seed in SEEDS:
        X, y, X_test, y_test = data_of(name, seed)
        model = PolyplaneClassifier(random_state=seed, n_jobs=-1)
        start = time.perf_counter()
        model.fit(X, y)
        found["seconds"].append(time.perf_counter() - start)
        found["lightgbm"] += seconds_of_lightgbm(name, seed, is_taken)
        found["errors"].append(error(model, X_test, y_test))
        known = np.isin(y_test, model.classes_)
        shares = model.predict_proba(X_test[known])
        found["losses"].append(float(log_loss(y_test[known], shares, labels=model.classes_)))
        if len(model.classes_) == 2:
            found["aucs"].append(float(roc_auc_score(y_test[known], shares[:, 1])))
        found["planes"].append(int(model.n_planes_))
        found["recipes"].append(list(model.recipes_))
        if model.expected_ is not None:
            expected = model.expected_.model
            found["expected"].append([100 * expected.error, 100 * expected.error_se])
    one_thread = model.set_params(n_jobs=1)
    one_thread.predict(X_test)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        one_thread.predict(X_test)
        times.append(1e6 * (time.perf_counter() - start) / len(y_test))
    return found | {"microseconds": min(times), "n_test": len(y_test)}


def rivals_of(name, peers, boosters):
    """Error of each rival that takes the set."""
    found = {rival: one["error"] for rival, one in boosters.get(name, {}).items() if "error" in one}
    of_set = peers.get(name, {})
    for rival in ("linear", "rbf"):
        if rival in of_set:
            found[f"{rival} SVM"] = of_set[rival]["error"]
    if of_set.get("boosting") and "HistGB" not in found:
        found["HistGB"] = float(np.mean(of_set["boosting"]["errors"]))
    return found


def verdict(name, ours, peers, boosters):
    """How a set compares, by goal; None where there is nothing to compare."""
    rivals = rivals_of(name, peers, boosters)
    mean = float(np.mean(ours["errors"]))
    linear = [rivals[rival] for rival in ("linear SVM", "logistic") if rival in rivals]
    seconds = float(np.median(ours["seconds"]))
    boosted = {rival: one for rival, one in boosters.get(name, {}).items() if "error" in one}
    light, cat = seconds_of_light(ours, boosted), boosted.get("CatBoost")
    losses = [one["loss"] for rival, one in boosted.items() if rival != "logistic"]
    is_one_part = n_folds_of(name) == 1
    standard_error = np.sqrt(mean * (100 - mean) / ours["n_test"])
    return {
        "close": mean <= min(rivals.values()) + CLOSE if rivals else None,
        "near": mean <= min(rivals.values()) + NEAR if rivals else None,
        "linear": mean <= min(linear) + CLOSE if linear else None,
        "loss": float(np.mean(ours["losses"])) <= min(losses) if losses else None,
        "faster than CatBoost": seconds < cat["seconds"] if cat else None,
        "3 times LightGBM": seconds <= 3 * light if light else None,
        "10 times LightGBM": seconds <= 10 * light if light else None,
        "steady": bool(np.std(ours["errors"]) <= standard_error) if is_one_part else None,
    }


def is_as_expected(ours):
    """Whether the test error of each fit is within two standard errors of the expected one.

    Both have one: that of the judged rows, and that of the test rows.
    """
    errors = ours["errors"][: len(ours["expected"])]
    found = []
    for error_found, (error_expected, standard_error) in zip(errors, ours["expected"], strict=True):
        of_test = np.sqrt(max(error_found * (100 - error_found), 1.0) / ours["n_test"])
        far = abs(error_found - error_expected)
        found.append(bool(far <= 2 * np.hypot(standard_error, of_test)))
    return found


def seconds_of_light(ours, boosted):
    """Of the same run, or of that of `bench_boosters`."""
    if ours.get("lightgbm"):
        return float(np.median(ours["lightgbm"]))
    return boosted.get("LightGBM 400", {}).get("seconds")


def mean_ranks(found, peers, boosters):
    """Of each machine on the sets that it takes: 0 where it is the best of them, 1 the last."""
    ranks = {}
    for name, ours in found.items():
        errors = {"polyplane": float(np.mean(ours["errors"])), **rivals_of(name, peers, boosters)}
        places = (rankdata(list(errors.values())) - 1) / max(1, len(errors) - 1)
        for machine, place in zip(errors, places, strict=True):
            ranks.setdefault(machine, []).append(place)
    return dict(sorted(ranks.items(), key=lambda item: np.mean(item[1])))


def line_of(name, ours, peers, boosters):
    rivals = rivals_of(name, peers, boosters)
    best = min(rivals, key=rivals.get) if rivals else ""
    light = boosters.get(name, {}).get("LightGBM 400", {})
    light_seconds = seconds_of_light(ours, boosters.get(name, {}))
    recipes = [recipe for of_fit in ours["recipes"] for recipe in of_fit]
    area = f"{1 - np.mean(ours['aucs']):.3f}" if ours["aucs"] else ""
    return [
        name, f"{rivals[best]:.2f} ({best})" if best else "",
        *(f"{rivals[one]:.2f}" if one in rivals else "" for one in ("linear SVM", "rbf SVM")),
        f"{light['error']:.2f}" if "error" in light else "",
        spread(ours["errors"]), f"{np.mean(ours['losses']):.3f}", area,
        f"{np.mean(ours['planes']):.0f}",
        f"{np.median(ours['seconds']):.2f}",
        f"{light_seconds:.2f}" if light_seconds else "",
        f"{ours['microseconds']:.2f}", max(set(recipes), key=recipes.count),
    ]  # fmt: skip


def main(names=None):
    peers = json.loads(bench_peers.FILE.read_text())
    file = bench_boosters.FILE
    boosters = json.loads(file.read_text()) if file.exists() else {}
    X, y = sets.load("checkerboard")[:2]
    PolyplaneClassifier(random_state=0).fit(X, y)  # compiles
    has_lightgbm = importlib.util.find_spec("lightgbm") is not None
    seconds_of_lightgbm("checkerboard", 0, has_lightgbm)  # starts its threads
    found = json.loads(FILE.read_text()) if FILE.exists() and not names else {}
    for name in names or [*sets.NAMES, *tables.TABLES]:
        if name not in found:
            of_light = boosters.get(name, {}).get("LightGBM 400", {})
            found[name] = measure(name, has_lightgbm and "error" in of_light)
            FILE.write_text(json.dumps(found, indent=1))
        print(*line_of(name, found[name], peers, boosters), sep=" | ", flush=True)
    report(found, peers, boosters)


def report(found, peers, boosters):
    lines = [line_of(name, found[name], peers, boosters) for name in found]
    verdicts = [verdict(name, found[name], peers, boosters) for name in found]
    as_expected = [one for ours in found.values() for one in is_as_expected(ours)]
    counts = {}
    for goal in verdicts[0]:
        known = [one[goal] for one in verdicts if one[goal] is not None]
        counts[goal] = f"{sum(known)} of {len(known)}"
    header = [
        "data", "best rival %", "linear SVM %", "RBF-SVM %", "LightGBM 400 %", "polyplane %",
        "log-loss", "1 - AUC", "planes", "seconds, trials included", "LightGBM 400",
        "µs a prediction", "most frequent recipe",
    ]  # fmt: skip
    publish(
        "polyplane",
        "PolyplaneClassifier with its defaults",
        "Nothing is set; mean and deviation over five seeds, two threads. Rivals are those of "
        "`python -m benchmarks peers` (linear and RBF-SVM tuned) and `python -m benchmarks "
        "boosters` (defaults, two threads). Tables are fitted as frames, with texts and gaps "
        "as they are; those below 2,000 rows in five folds, of which each seed has one. Where "
        "LightGBM is installed it is timed in the same run, a fit after each of ours.",
        table(header, lines),
        f"Error within {CLOSE} points of the best of all rivals or below: {counts['close']}; "
        f"within {NEAR}: {counts['near']}; of the linear ones within {CLOSE}: {counts['linear']}. "
        f"Log-loss at or below the best booster's: {counts['loss']}. Fit, trials included, faster "
        f"than CatBoost: {counts['faster than CatBoost']}; at most 3 times LightGBM with 400 "
        f"trees: {counts['3 times LightGBM']}, at most 10 times: {counts['10 times LightGBM']}. "
        "Seeds deviate by no more than the standard error of their mean error on the test rows: "
        f"{counts['steady']}. Test error within two standard errors of the expected error: "
        f"{sum(as_expected)} of {len(as_expected)} fits.",
        "Mean rank by error, 0 being the best of those that take a set and 1 the last: "
        + ", ".join(
            f"{machine} {np.mean(ranks):.2f} ({len(ranks)} sets)"
            for machine, ranks in mean_ranks(found, peers, boosters).items()
        )
        + ".",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
