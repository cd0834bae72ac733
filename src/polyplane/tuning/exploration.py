"""`polyplane.explore`: is the problem nonlinear, what would it buy, and what did models see?"""

import html
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from polyplane.report.columns import has_differences
from polyplane.report.page.page import page_of
from polyplane.report.suspicions import Suspicion, quoted, suspicions
from polyplane.tuning.budget import Budget, budget_of
from polyplane.tuning.candidates import ADDITIVE, CANDIDATES, LINEAR, MAJORITY, PLANES
from polyplane.tuning.code import code_that_makes
from polyplane.tuning.contents import Shown, content_of, table_of
from polyplane.tuning.diagnosis import Advice, Outlook, advice, best_of, outlook
from polyplane.tuning.runs import Run
from polyplane.tuning.samples import Sample, sample_of_file, sample_of_rows
from polyplane.tuning.search import Search
from polyplane.whole_files import whole_file

__all__ = ["Exploration", "Lines", "Report", "explore", "explore_sample"]

FULL_PAGE_SECONDS = 15.0  # seconds after which there is one with all parts, at the latest
SECONDS_BETWEEN_PAGES = 30.0
MOST_LEAKING, MOST_NAMED = 4, 3  # one column in so many may leak; of those, so many are named
MIN_COMPILATION_SECONDS_TOLD = 2.0  # seconds of compilation, of which something is said
FOLDS = 3
Watch = Callable[[Run], None]


class Lines(list[dict[str, Any]]):
    """A table where pandas is not installed: a list of dicts that is shown as a table."""

    def __repr__(self) -> str:
        width = max((len(line["machine"]) for line in self), default=0)
        return "\n".join(
            f"{line['machine']:{width}}  {line['error']:7.2%} wrong  "
            f"{line['microseconds']:8.3g} µs a row  {line['rows']:,} rows"
            for line in self
        )


@dataclass(repr=False)
class Report:
    """Result of `compare`, with a page of its own.

    Attributes
    ----------
    verdict : str
        Name of the best model, or "a tie".
    summary : str
        Sentences about the result.
    table : DataFrame or list of dict
        A row for each model: error, interval, lead, times.
    models : dict of str to estimator
        Models by name, fitted without the part of the rows on which they were judged.
    """

    verdict: str
    summary: str  # words
    lines: Lines  # one for each model
    models: dict[str, Any]  # fitted without a part of the sample, on which they were judged
    content: Mapping[str, Any]  # all that the page shows

    @property
    def table(self) -> Any:
        """One row for each model: a DataFrame if pandas is installed, else a list of dicts."""
        if importlib.util.find_spec("pandas") is None:
            return self.lines
        return importlib.import_module("pandas").DataFrame(self.lines)

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        """Return what fits at a prompt; models and their settings would fill it for pages."""
        title = f"{type(self).__name__}: {self.verdict}"
        return "\n".join([title, self.summary, repr(self.lines), "to_html(path) writes the page."])

    def to_html(self, path: Any = None) -> str:
        """Return the page as one text; with a path, write it there as well."""
        page = page_of(self.content)
        if path is not None:
            with whole_file(Path(os.fspath(path))) as file:
                file.write(page.encode("utf-8"))
        return page

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        style = "width:100%;height:80vh;border:0"
        return f'<iframe title="polyplane" style="{style}" srcdoc="{page}"></iframe>'


@dataclass(repr=False)
class Exploration(Report):
    """Result of `explore`: errors of algorithms of different kinds, and what follows from them.

    Attributes
    ----------
    verdict : {"linear", "additive", "piecewise-linear", "kernel", "more-data", "noise"}
        Simplest kind of algorithm that these data need.
    summary : str
        Sentences about the result.
    table : DataFrame or list of dict
        A row for each algorithm: error, interval, lead, times.
    models : dict of str to estimator
        Models by name, fitted without the part of the rows on which they were judged.
    suspicions : sequence of Suspicion
        What looks wrong about the rows: leaks, identifiers, contradictions, drift.
    code : str
        Program that trains the best algorithm, to paste.
    """

    advice: Advice | None = None
    outlook: Outlook | None = None
    suspicions: Sequence[Suspicion] = ()
    code: str = ""  # to paste
    runs: Mapping[str, Sequence[Run]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)  # algorithms, and why
    is_interrupted: bool = False
    seconds: float = 0.0
    n_rows: int = 0  # of the largest sample
    n_met: int = 0
    dropped: Sequence[str] = ()  # columns that nearly decide alone: all the rest is without them


def explore(
    X: Any,
    y: Any = None,
    *,
    budget: Any = 60,
    report: Any = None,
    image_shape: tuple[int, int] | None = None,
    n_folds: int = FOLDS,
    random_state: int = 0,
    n_jobs: int | None = -1,
    **reading: Any,
) -> Exploration:
    """Compare algorithms of different kinds on the same rows, and say what kind of data these are.

    Algorithms are tried on samples that grow while time remains. Ctrl-C ends it with what has been
    found so far.

    Parameters
    ----------
    X : array-like, sparse matrix, table or path
        Rows; or a file, whose labels are in it.
    y : array-like of shape (n_rows,), optional
        Labels; left out if X is a file.
    budget : float or str, default=60
        Time to spend: seconds, or a text such as "5m".
    report : path, optional
        Page to write, as soon as two algorithms can be compared, now and then, and in the end.
    image_shape : tuple of int, optional
        Height and width: rows and planes are shown as pictures.
    n_folds : int, default=3
        Parts of the rows, each judged by models of the others.
    random_state : int, default=0
        Seed of samples, folds and estimators.
    n_jobs : int, default=-1
        Threads; -1 uses all cores.
    **reading : dict
        Options of `stream` such as `label`, for files.

    Returns
    -------
    Exploration
        Result with `verdict`, `summary`, `table`, `models`, `advice`, `suspicions` and
        `to_html(path)`.

    See Also
    --------
    compare : Judge classifiers of your own choice.
    alpha_path : Errors along the regularisation of one algorithm.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import polyplane as pp
    >>> X, y = load_digits(return_X_y=True)
    >>> result = pp.explore(X, y, budget="1m")  # doctest: +SKIP
    >>> result.verdict  # doctest: +SKIP
    'piecewise-linear'
    """
    limit = budget_of(budget)
    if y is None:
        sample = sample_of_file(X, limit, random_state, **reading)
    elif reading:
        raise TypeError(f"{', '.join(reading)}: options of reading are for files, not for X and y.")
    else:
        sample = sample_of_rows(X, y, random_state)
    return explore_sample(
        sample, limit, n_folds, random_state, n_jobs, report=report, image_shape=image_shape
    )


def explore_sample(
    sample: Sample,
    budget: Budget,
    n_folds: int = FOLDS,
    seed: int = 0,
    n_jobs: int | None = -1,
    *,
    report: Any = None,
    image_shape: tuple[int, int] | None = None,
    watch: Watch | None = None,
) -> Exploration:
    """Explore a sample as `explore` does; `watch` is called after each run."""
    if n_folds < 2:
        raise ValueError(f"n_folds is {n_folds}, expected 2 or more.")
    if not has_differences(sample.X):
        raise ValueError("All rows are the same: there is nothing to learn from.")
    with budget.without_compilation():
        return _explored(sample, budget, n_folds, seed, n_jobs, report, image_shape, watch)


def _explored(
    sample: Sample,
    budget: Budget,
    n_folds: int,
    seed: int,
    n_jobs: int | None,
    report: Any,
    image_shape: tuple[int, int] | None,
    watch: Watch | None,
) -> Exploration:
    noticed = _noticed(sample)
    leaking = _leaking(sample, noticed) if image_shape is None else ()
    search = Search(sample.without(leaking), budget, n_folds, seed, n_jobs)
    places = [(sample.columns.names.index(name), name) for name in leaking]
    found = Findings(search, image_shape, noticed, places)
    is_interrupted, has_page, next_page, n_rows = False, False, FULL_PAGE_SECONDS, 0
    try:
        for run in search.work():
            if watch is not None:
                watch(run)
            is_first = next_page == FULL_PAGE_SECONDS and 0 < n_rows < run.n_rows
            is_due = budget.elapsed > next_page and len(search.runs) > 2
            if report is not None and not has_page and {LINEAR, "amm"} <= search.runs.keys():
                found.result(is_final=False, is_brief=True).to_html(report)
                has_page = True
            elif report is not None and (is_first or is_due):
                start = budget.elapsed
                found.result(is_final=False).to_html(report)
                budget.page_seconds = budget.elapsed - start
                next_page = budget.elapsed + SECONDS_BETWEEN_PAGES
            n_rows = run.n_rows
    except KeyboardInterrupt:
        if LINEAR not in search.runs:
            raise
        is_interrupted = True
    result = found.result(is_final=True, is_interrupted=is_interrupted)
    if report is not None:
        result.to_html(report)
    return result


class Findings:
    """A search, and the result that it has at any time."""

    def __init__(
        self,
        search: Search,
        image_shape: tuple[int, int] | None,
        noticed: Sequence[Suspicion],
        leaking: Sequence[tuple[int, str]],
    ) -> None:
        self.search, self.image_shape = search, image_shape
        self.suspicions, self.places = noticed, leaking
        self.leaking = tuple(name for _, name in leaking)

    def result(
        self, is_final: bool, is_interrupted: bool = False, is_brief: bool = False
    ) -> Exploration:
        """Return the result so far; a brief one leaves out what takes time to show."""
        search, sample = self.search, self.search.sample
        runs, said = search.runs, advice(search.runs, sample.y)
        said = _without(self.leaking, said)
        planes = best_of(runs, PLANES)
        shown = Shown(
            said.machine,
            LINEAR if LINEAR in runs else MAJORITY,
            best_of(runs, ADDITIVE),
            "amm" if "amm" in runs else planes,
        )
        table = sample.table

        def view(run: Run) -> Any:
            return run.model, table.part(run.held_out)

        content = content_of(runs, view, sample.y, sample.places, shown, self.image_shape, is_brief)
        content |= {"is_final": is_final, "is_interrupted": is_interrupted}
        return self._made(content, said, is_interrupted)

    def _code(self, machine: str) -> str:
        sample, setting = self.search.sample, self.search.runs[machine][-1].setting
        if CANDIDATES[machine].step == MAJORITY:
            return "# nothing to train: always say the most frequent label"
        shown = dict(sorted(setting.parameters.items()))
        places, reading = self.places, sample.reading
        if reading is not None and sample.layout is not None and places:  # never read them
            source, options = reading
            reading = source, options | {"drop": [*options.get("drop", ()), *self.leaking]}
            places = ()
        return code_that_makes(
            setting.kind.__name__, shown, setting.scale, sample.form, reading, places
        )

    def _made(self, content: dict[str, Any], said: Advice, is_interrupted: bool) -> Exploration:
        search, sample = self.search, self.search.sample
        runs = search.runs
        ahead = outlook(runs, said)
        meanings = {name: candidate.meaning for name, candidate in CANDIDATES.items()}
        units = {name: candidate.unit for name, candidate in CANDIDATES.items()}
        table = table_of(runs, LINEAR, meanings, units)
        code = self._code(said.machine) if runs else ""
        n_rows = max((each[-1].n_rows for each in runs.values()), default=0)
        compiling = _compiling(search.budget.compile_seconds)
        words = [said.sentence, ahead.sentence, *(one.sentence for one in self.suspicions)]
        words.append(compiling)
        about = {
            "kind": "exploration",
            "title": sample.title,
            "verdict": said.verdict,
            "headline": said.sentence,
            "outlook": ahead.sentence,
            "suspicions": [[one.kind, one.sentence] for one in self.suspicions],
            "best": said.machine,
            "beside": LINEAR,
            "steps": _steps(said),
            "machines": table,
            "code": code,
            "left_out": dict(search.left_out),
            "n_rows": n_rows,
            "n_met": sample.n_met,
            "is_all": sample.is_all,
            "dropped": list(self.leaking),
            "n_columns": len(sample.columns.names),
            "n_folds": search.n_folds,
            "seconds": search.budget.elapsed,
            "compiling": compiling,
        }
        return Exploration(
            said.verdict,
            "\n".join(filter(None, words)),
            Lines(table),
            {name: each[-1].model for name, each in runs.items()},
            about | content,
            said,
            ahead,
            self.suspicions,
            code,
            runs,
            dict(search.left_out),
            is_interrupted,
            search.budget.elapsed,
            n_rows,
            sample.n_met,
            self.leaking,
        )


def _noticed(sample: Sample) -> list[Suspicion]:
    """Return what is suspicious about the rows, before anything is trained."""
    aside = tuple(sample.layout.set_aside) if sample.layout is not None else ()
    return suspicions(sample.table, sample.places, sample.n_met, aside)


def _leaking(sample: Sample, noticed: Sequence[Suspicion]) -> tuple[str, ...]:
    """Return columns to leave out; none if so many nearly decide alone that the problem is easy."""
    found = tuple(name for one in noticed if one.kind == "leak" for name in one.columns)
    n_columns = len(sample.columns.names)
    is_few = len(found) <= max(1, n_columns // MOST_LEAKING) and len(found) < n_columns
    return found if is_few else ()


def _without(leaking: Sequence[str], said: Advice) -> Advice:
    """Return the advice with the names of columns that were left out."""
    if not leaking:
        return said
    names = ", ".join(map(quoted, leaking[:MOST_NAMED]))
    more = f" and {len(leaking) - MOST_NAMED} more" if len(leaking) > MOST_NAMED else ""
    verb = "decides" if len(leaking) == 1 else "each decide"
    sentence = f"{said.sentence[:1].lower()}{said.sentence[1:]}"
    return replace(said, sentence=f"Without {names}{more}, which nearly {verb} alone: {sentence}")


def _compiling(seconds: float) -> str:
    """Return a sentence about the time of compilation, if it was noticeable."""
    if seconds < MIN_COMPILATION_SECONDS_TOLD:
        return ""
    return (
        f"Compiling loops took {seconds:.0f} seconds beside the budget, which happens once on a "
        "machine."
    )


def _steps(said: Advice) -> list[dict[str, Any]]:
    """Return what each step up the ladder gains and costs."""
    return [
        {
            "step": one.step,
            "machine": one.run.machine,
            "below": one.below.machine,
            "rows": one.run.n_rows,
            "error": one.run.error,
            "points": one.lead.points,
            "spread": one.lead.spread,
            "p": one.lead.p,
            "microseconds": one.run.microseconds - one.below.microseconds,
            "bytes": one.run.n_bytes - one.below.n_bytes,
            "is_taken": one.is_taken,
        }
        for one in said.steps
    ]
