"""`polyplane explore`: is it nonlinear, and what would it buy?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyplane.cli.failures import DONE, INTERRUPTED, CallError
from polyplane.cli.input.row_input import check_labels, chunks_of, open_rows
from polyplane.cli.output.screen import Screen
from polyplane.tuning.budget import Budget, seconds_of
from polyplane.tuning.candidates import CANDIDATES
from polyplane.tuning.exploration import Exploration, explore_sample
from polyplane.tuning.runs import Run
from polyplane.tuning.samples import Sample, chunks_to_sample, sample_of_stream

__all__ = ["run"]

SEED, ALL_CORES = 0, -1


def run(
    screen: Screen,
    *,
    data: Sequence[str],
    report: str | None,
    budget: str,
    rows: int | None,
    folds: int,
    seed: int | None,
    jobs: int | None,
    reading: dict[str, Any],
) -> int:
    """Try algorithms of different kinds on samples that grow, and say what follows."""
    start = SEED if seed is None else seed
    if folds < 2:
        raise CallError(f"--folds is {folds}, expected 2 or more.")
    if rows is not None and rows < 10:
        raise CallError(f"--rows is {rows}, expected 10 or more.")
    limit = _budget_of(budget)
    if report is not None and not Path(report).absolute().parent.is_dir():
        raise CallError(f"--report is {report!r}, whose folder is not there: make it first.")
    sample = _sample(screen, data, reading, limit, start, rows)
    with screen.progress("Exploring", unit="runs") as advance:

        def watch(done: Run) -> None:
            advance(1, f"{done.machine} {done.error:.2%} on {done.n_rows:,} rows")

        found = explore_sample(
            sample,
            limit,
            folds,
            start,
            ALL_CORES if jobs is None else jobs,
            report=report,
            watch=watch,
        )
    _show(screen, found, report)
    screen.result(_plain(found, report))
    return INTERRUPTED if found.is_interrupted else DONE


def _budget_of(text: str) -> Budget:
    try:
        return Budget(seconds_of(text))
    except ValueError:
        raise CallError(f"--budget is {text!r}, expected a time such as 60s, 5m or 1h.") from None


def _sample(
    screen: Screen,
    data: Sequence[str],
    reading: dict[str, Any],
    budget: Budget,
    seed: int,
    n_rows: int | None,
) -> Sample:
    stream = open_rows(data, reading)
    chunks = chunks_of(stream, screen, "Reading", chunks_to_sample(stream))
    sample = sample_of_stream(
        stream, budget, seed, chunks, check=lambda y: check_labels(y, data[0])
    )
    if n_rows is None or n_rows >= sample.n_rows:
        return sample
    return replace(sample, X=sample.X[:n_rows], y=sample.y[:n_rows], places=sample.places[:n_rows])


def _show(screen: Screen, found: Exploration, report: str | None) -> None:
    rows = f"{found.n_rows:,} rows"
    if not found.content["is_all"]:
        rows = f"{found.n_rows:,} of the {found.n_met:,} rows that there was time to read"
    elif found.n_met > found.n_rows:
        rows = f"{found.n_rows:,} of {found.n_met:,} rows"
    screen.table(
        ["algorithm", "error", "±", "lead", "µs a row", "size", "rows"],
        [
            [
                line["machine"],
                f"{line['error']:.2%}",
                f"{line['standard_error']:.2%}",
                "" if line["lead"] is None else f"{100 * line['lead']:+.2f}",
                f"{line['microseconds']:.3g}",
                f"{line['size']:.0f} {line['unit']}",
                f"{line['rows']:,}",
            ]
            for line in found.lines
        ],
        f"{rows}, each held out once; leads are points over linear",
    )
    screen.say(f"Verdict: {found.verdict}")
    for sentence in found.summary.splitlines():
        screen.say(sentence)
    for name, why in found.left_out.items():
        screen.say(f"{name} was left out: {why}.")
    screen.say()
    for line in found.code.splitlines():
        screen.say(line, is_one_line=True)
    if found.is_interrupted:
        screen.note("Stopped early: this is what was found until then.")
    if report is not None:
        screen.say()
        screen.say(f"The page is {report}.")


def _plain(found: Exploration, report: str | None) -> dict[str, Any]:
    assert found.advice is not None
    assert found.outlook is not None
    return {
        "rows": found.n_rows,
        "rows_met": found.n_met,
        "verdict": found.verdict,
        "advice": found.advice.sentence,
        "outlook": found.outlook.sentence,
        "more_rows": found.outlook.more_rows,
        "cleaner_labels": found.outlook.cleaner_labels,
        "suspicions": [
            {"kind": one.kind, "sentence": one.sentence, "columns": list(one.columns)}
            for one in found.suspicions
        ],
        "steps": found.content["steps"],
        "machines": [
            {
                "machine": line["machine"],
                "algorithm": CANDIDATES[line["machine"]].algorithm or None,
                "rows": line["rows"],
                "error": line["error"],
                "standard_error": line["standard_error"],
                "low": line["low"],
                "high": line["high"],
                "lead": line["lead"],
                "p": line["p"],
                "microseconds": line["microseconds"],
                "bytes": line["bytes"],
                "size": line["size"],
                "unit": line["unit"],
                "seconds": line["fit_seconds"],
            }
            for line in found.lines
        ],
        "left_out": dict(found.left_out),
        "code": found.code,
        "report": report,
        "interrupted": found.is_interrupted,
        "seconds": found.seconds,
    }
