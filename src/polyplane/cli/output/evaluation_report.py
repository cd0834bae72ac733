"""Report about a model on labelled rows, for people and for programs.

Of algorithms without probabilities only what is meaningful for scores: no losses, no calibration.
"""

import math
from typing import Any

from polyplane.cli.output.screen import Screen
from polyplane.report.metrics import Confusions, Evaluation, standard_error

__all__ = ["plain_evaluation", "show_evaluation"]

CORNER = "true \\ predicted"
OF_CLASSES = ("class", "rows", "predicted", "precision", "recall", "F1")
OF_SCORES = {
    "log-loss": "log-loss", "brier": "Brier score", "auc": "AUC",
    "average-precision": "average precision",
}  # fmt: skip
N_WORST_CONFUSIONS = 10  # confusions that are listed where the matrix has no room


def plain_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain values, for programs."""
    tally, at_threshold = evaluation.tally, evaluation.at_threshold
    ranked = _padded(evaluation.over_classes(), tally)
    return {
        "rows": tally.n_rows,
        "errors": tally.n_errors,
        "error": tally.error,
        "standard_error": standard_error(tally.error, tally.n_rows),
        "scored_rows": evaluation.n_scored,
        **{name.replace("-", "_"): evaluation.value_of(name) for name in OF_SCORES},
        "ranks_are_exact": evaluation.ranks.is_exact,
        "positive": evaluation.positive,
        "macro_f1": tally.macro_f1,
        "classes": tally.labels,
        "unknown_labels": [label for label, _ in tally.unknown],
        "confusion": tally.counts,
        "per_class": [
            {**plain, "auc": area, "average_precision": precision}
            for plain, (area, precision) in zip(_plain_classes(tally), ranked, strict=True)
        ],
        "calibration": _plain_calibration(evaluation),
        "threshold": evaluation.threshold,
        "threshold_error": at_threshold.error if at_threshold else None,
        "threshold_confusion": at_threshold.counts if at_threshold else None,
        "threshold_per_class": _plain_classes(at_threshold) if at_threshold else [],
    }


def _padded(ranked: list[tuple[float, float]], tally: Confusions) -> list[tuple[float, float]]:
    """Return scores of classes, NaN of labels that the model does not know."""
    return ranked + [(math.nan, math.nan)] * len(tally.unknown)


def _plain_classes(tally: Confusions) -> list[dict[str, Any]]:
    return [
        {
            "label": quality.label,
            "rows": quality.n_rows,
            "predicted": quality.n_predicted,
            "precision": quality.precision,
            "recall": quality.recall,
            "f1": quality.f1,
        }
        for quality in tally.qualities
    ]


def _plain_calibration(evaluation: Evaluation) -> list[dict[str, Any]]:
    bins = evaluation.probabilities.calibration if evaluation.probabilities else []
    return [
        {
            "lower": one.lower,
            "upper": one.upper,
            "rows": one.n_rows,
            "predicted": one.predicted,
            "observed": one.observed,
        }
        for one in bins
    ]


# ---- for people --------------------------------------------------------------------------


def show_evaluation(screen: Screen, evaluation: Evaluation) -> None:
    """Errors, scores and tables."""
    tally = evaluation.tally
    screen.say(_errors_in_words(tally))
    screen.say(_scores_in_words(evaluation))
    _show_confusions(screen, tally)
    ranked = _padded(evaluation.over_classes(), tally)
    screen.table(
        [*OF_CLASSES, "AUC", "AP"],
        [
            [*row, f"{area:.3f}", f"{precision:.3f}"]
            for row, (area, precision) in zip(_class_rows(tally), ranked, strict=True)
        ],
        "Classes",
    )
    if evaluation.at_threshold is not None:
        _show_threshold(screen, evaluation, evaluation.at_threshold)
    if evaluation.probabilities is not None:
        _show_calibration(screen, evaluation)


def _errors_in_words(tally: Confusions) -> str:
    """Return a line with the number and the share of wrong rows."""
    spread = standard_error(tally.error, tally.n_rows)
    return f"{tally.n_rows:,} rows, {tally.n_errors:,} errors: {tally.error:.2%} ± {spread:.2%}"


def _scores_in_words(evaluation: Evaluation) -> str:
    """Return a line about the ranks of scores, as far as they are known."""
    values = {name: evaluation.value_of(key) for key, name in OF_SCORES.items()}
    words = [f"{name} {value:.4f}" for name, value in values.items() if not math.isnan(value)]
    if not words:
        return "no AUC: rows of one class only"
    which = "mean over classes" if evaluation.positive is None else f"of {evaluation.positive}"
    about = "" if evaluation.ranks.is_exact else ", approximate"
    return f"{', '.join(words)} (ranks: {which}{about})"


def _class_rows(tally: Confusions) -> list[list[Any]]:
    return [
        [q.label, q.n_rows, q.n_predicted, *(f"{v:.3f}" for v in (q.precision, q.recall, q.f1))]
        for q in tally.qualities
    ]


def _show_confusions(screen: Screen, tally: Confusions) -> None:
    names = [str(label) for label in tally.labels]
    matrix = [[name, *counts] for name, counts in zip(names, tally.counts.tolist(), strict=True)]
    if screen.fits([CORNER, *names], matrix):
        screen.table([CORNER, *names], matrix, "Confusions")
    elif tally.n_errors:
        worst = [[f"{t} as {p}", n] for t, p, n in tally.confusions(N_WORST_CONFUSIONS)]
        screen.table(["confusion", "rows"], worst, "Most frequent confusions")


def _show_threshold(screen: Screen, evaluation: Evaluation, tally: Confusions) -> None:
    title = f"{evaluation.positive} from probability {evaluation.threshold:g} on"
    screen.table(OF_CLASSES, _class_rows(tally), f"{title}: {_errors_in_words(tally)}")


def _show_calibration(screen: Screen, evaluation: Evaluation) -> None:
    assert evaluation.probabilities is not None
    what = "the predicted class" if evaluation.positive is None else str(evaluation.positive)
    screen.table(
        ["probability", "rows", "predicted", "observed"],
        [
            [
                f"{one.lower:.1f} to {one.upper:.1f}",
                one.n_rows,
                f"{one.predicted:.3f}",
                f"{one.observed:.3f}",
            ]
            for one in evaluation.probabilities.calibration
            if one.n_rows
        ],
        f"Calibration of the probability of {what}",
    )
