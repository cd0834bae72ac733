"""Summary of a training, for people and for programs."""

from typing import Any

from polyplane.cli.input.table_words import label_words, table_lines
from polyplane.cli.output.evaluation_report import plain_evaluation
from polyplane.cli.output.screen import Screen
from polyplane.cli.training.training_run import Watch
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.input.tables import width_of
from polyplane.model.fit_report import expected_words
from polyplane.report.metrics import Evaluation, standard_error

__all__ = ["summary_of", "tell_summary"]

MOST_SHOWN = 12  # classes


def summary_of(job: Any, watch: Watch, tested: Evaluation | None) -> dict[str, Any]:
    """Return what a training came to, as plain values."""
    model, seconds = job.estimator, job.seconds
    tally = tested.tally if tested else None
    has_planes = hasattr(model, "planes_per_class_")
    per_class = model.planes_per_class_ if has_planes else model.n_support_
    training = max(seconds["training"] - watch.seconds_searching, 1e-9)
    return {
        "algorithm": type(model).__name__,
        "rows": job.n_rows,
        "features": width_of(model),
        "table": job.table,
        "label": job.label,
        "classes": model.classes_.tolist(),
        "passes": model.n_iter_,
        "steps": model.n_steps_,
        "planes": model.n_planes_ if has_planes else None,
        "support_vectors": None if has_planes else int(model.support_.size),
        "per_class": per_class.tolist(),
        "settings": found_settings(model),
        "expected": fit_report_of(model).get("expected"),
        "trials": fit_report_of(model).get("trials"),
        "progressive_error": None if job.request.resume else watch.progressive_error,
        "progressive_rows": 0 if job.request.resume else watch.n_new,
        "test_rows": tally.n_rows if tally else None,
        "test_error": tally.error if tally else None,
        "test_standard_error": standard_error(tally.error, tally.n_rows) if tally else None,
        "test": plain_evaluation(tested) if tested else None,
        "seconds_reading": seconds["reading"],
        "seconds_searching": watch.seconds_searching,
        "seconds_training": seconds["training"] - watch.seconds_searching,
        "rows_per_second": watch.n_visits / training,
        "skipped": job.n_skipped,
        "checkpoints": watch.n_kept,
        "model": None if job.path is None else str(job.path),
        "model_bytes": None if job.path is None else job.path.stat().st_size,
    }


def fit_report_of(estimator: Any) -> dict[str, Any]:
    """Return what a fit knows of its model, such as the error to expect on new rows."""
    report: dict[str, Any] = vars(estimator).get("_fit_report", {})
    return report


def found_settings(estimator: Any) -> dict[str, Any]:
    """Return the values that a fit has found for parameters that were 'auto'."""
    found: dict[str, Any] = training_of(estimator).found
    return {name: value for name, value in found.items() if getattr(estimator, name) == "auto"}


def tell_summary(screen: Screen, found: dict[str, Any]) -> None:
    """Show a summary in words."""
    lines = [("algorithm", found["algorithm"])]
    columns = f"{found['features']:,} columns"
    if found["table"] is not None:
        n_columns = len(found["table"]["columns"])
        columns = f"{n_columns:,} column{'s' * (n_columns > 1)} ({found['features']:,} features)"
    lines.append(("data", f"{found['rows']:,} rows, {columns}"))
    if found["table"] is not None:
        lines += table_lines(found["table"])
    if found["label"] is not None:
        lines.append(("label", label_words(found["label"])))
    if found["skipped"]:
        lines.append(("left out", f"{found['skipped']:,} rows that cannot be read"))
    if found["test_error"] is not None:
        spread = f"{found['test_error']:.2%} ± {found['test_standard_error']:.2%}"
        lines.append(("error", f"{spread} of {found['test_rows']:,} test rows"))
    elif found["progressive_error"] is not None:
        spread = f"{found['progressive_error']:.2%} of {found['progressive_rows']:,} rows"
        lines.append(("error", f"{spread}, predicted before they were first learned"))
    if found["expected"] is not None:
        lines.append(("expected", expected_words(found["expected"])))
    if found["trials"]:
        shares = {one["recipe"]: one["weight"] for one in found["trials"] if one["weight"] > 0}
        lines.append(("recipes", ", ".join(f"{name} {w:.0%}" for name, w in shares.items())))
    lines.append(_size(found))
    settings = ", ".join(f"{name} {_short(value)}" for name, value in found["settings"].items())
    if settings:
        lines.append(("found", settings))
    lines.append(("time", _times(found)))
    if found["model"]:
        lines.append(("model", f"{found['model']} ({_bytes(found['model_bytes'])})"))
    width = max(len(name) for name, _ in lines)
    for name, words in lines:
        screen.say(f"{name.ljust(width)}  {words}")


def _size(found: dict[str, Any]) -> tuple[str, str]:
    unit = "planes" if found["planes"] is not None else "support vectors"
    n = found["planes"] if found["planes"] is not None else found["support_vectors"]
    pairs = list(zip(found["classes"], found["per_class"], strict=True))
    some = ", ".join(f"{label}: {k:,}" for label, k in pairs[:MOST_SHOWN])
    more = ", ..." if len(pairs) > MOST_SHOWN else ""
    return unit, f"{n:,} ({some}{more})"


def _times(found: dict[str, Any]) -> str:
    words = [f"{_seconds(found['seconds_reading'])} reading"]
    if found["seconds_searching"] > 0:
        words.append(f"{_seconds(found['seconds_searching'])} searching settings")
    words.append(f"{_seconds(found['seconds_training'])} training")
    return f"{', '.join(words)} ({found['rows_per_second']:,.0f} rows/s)"


def _seconds(seconds: float) -> str:
    if seconds >= 100:
        return f"{int(seconds // 60)}m {seconds % 60:02.0f}s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.0f} ms"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _bytes(n: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    return f"{n:.1f} GB"
