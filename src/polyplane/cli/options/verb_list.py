"""The verbs of the command line: what each is called, takes and does."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from polyplane.cli.options.algorithms import Algorithm, algorithms
from polyplane.cli.options.declarations import Argument, Option, Verb
from polyplane.cli.options.shared_options import (
    SEED,
    algorithm_option,
    parameter_options,
    reading_options,
    screen_options,
)
from polyplane.cli.options.train_request import SCALES, train_request

__all__ = ["VERBS", "algorithm_named_in", "verb_called"]

DATA = Argument(
    "data", "DATA", "Files of rows, patterns such as 'part-*.csv', or - for a pipe.", is_many=True
)
MODEL = Argument("model", "MODEL", "A model that `polyplane train` has written.")
TARGETS = ("onnx", "c")
WRITTEN = ("libsvm", "csv", "parquet", "arrow", "npy", "npz")
METRICS = ("error", "log-loss", "auc", "average-precision", "brier")
AT_THRESHOLD = "Also count errors where the positive class is said from this probability on."
ROWS = Option("rows", "Rows of a random sample to try things on. Default: {}.", int, shown="N")
FOLDS = Option("folds", "Parts, each of which is held out once.", int, shown="K")
SCALE = Option(
    "scale",
    "Divide columns by their largest absolute value (maxabs), or give them mean 0 and deviation 1 "
    "(standard). The model keeps what it needs for that. Default: none.",
    shown="|".join(SCALES), choices=SCALES,
)  # fmt: skip
THRESHOLD = Option(
    "threshold",
    "{} Of two classes, and of machines with probabilities.",
    float, shown="NUMBER",
)  # fmt: skip
POSITIVE = Option(
    "positive",
    "Label of the positive class of two. Default: the second, in the order of labels.",
    shown="LABEL",
)  # fmt: skip
JOBS = Option("jobs", "Threads; -1 uses all cores.", int, shown="N")


def _train(chosen: Algorithm | None) -> Verb:
    return Verb(
        "train",
        "Train a model on rows of files and write it to a file.",
        "train clicks.csv.gz --test later.csv.gz --model clicks.model",
        "polyplane.cli.verbs.train",
        (DATA,),
        [
            Option("test", "Rows to measure the error on in the end.", shown="FILE"),
            _with_default(THRESHOLD, f"With --test: {AT_THRESHOLD[0].lower()}{AT_THRESHOLD[1:]}"),
            POSITIVE,
            Option("model", "File for the model.", names=("--model", "-m"), shown="FILE"),
            algorithm_option("The algorithm to train, of those below."),
            Option("stream", "Read rows a chunk at a time, for files of any size.", bool),
            Option("chunk_rows", "Rows of a chunk of a stream.", int, shown="N"),
            Option("cache", "Keep parsed rows beside each file, for later passes.", bool),
            SCALE,
            Option("resume", "Go on with a model, or with a training that was stopped.",
                   shown="MODEL"),
            Option("checkpoint", "Write the model every so often: 60s, 5m or 100000 rows.",
                   shown="EVERY"),
            Option("cluster", "Train on a Dask cluster: the address of its scheduler, or local:8 "
                   "for so many processes here.", shown="ADDRESS"),
            Option("learners", "Models side by side on the cluster. Default: one a thread.", int,
                   shown="N"),
            SEED,
            *parameter_options(chosen),
            *reading_options(),
            *screen_options(),
        ],
        "What is left at its default suits most data: try that first. `polyplane train -a amm "
        "--help` shows what a single algorithm has.",
        _list_of_algorithms(),
        train_request,
    )  # fmt: skip


def _predict() -> Verb:
    return Verb(
        "predict",
        "Label the rows of files, of a pipe or of a stream without end.",
        "predict clicks.model new.csv -o labels.csv --scores",
        "polyplane.cli.verbs.predict",
        (MODEL, DATA),
        [
            Option("output", "File for the predictions; standard output without it.",
                   names=("--output", "-o"), shown="FILE"),
            Option("scores", "Add the score of each class; of two, the second one's lead.", bool),
            Option("proba", "Add the probability of each class.", bool),
            _with_default(THRESHOLD, "Say the positive class where its probability is so high."),
            POSITIVE,
            Option("planes", "Add the number of the plane that decided.", bool),
            JOBS,
            *reading_options(),
            *screen_options(),
        ],
        "Labels in the rows are passed over, and need not be there. Predictions are one label a "
        "line; with --scores, --proba or --planes, CSV with a header; with --json, one object a "
        "line.",
        trains=False,
    )  # fmt: skip


def _evaluate() -> Verb:
    return Verb(
        "evaluate",
        "Measure a model on labelled rows: errors, probabilities, each class, planes used.",
        "evaluate clicks.model later.csv --threshold 0.2",
        "polyplane.cli.verbs.evaluate",
        (MODEL, DATA),
        [
            _with_default(THRESHOLD, AT_THRESHOLD),
            POSITIVE,
            JOBS,
            *reading_options(),
            *screen_options(),
        ],
        "Ranks (AUC and average precision) are exact up to a million rows of two classes, or rows "
        "times classes, and to some parts in ten thousand beyond.",
        trains=False,
    )


def _tune(chosen: Algorithm | None) -> Verb:
    return Verb(
        "tune",
        "Try settings of an algorithm on held-out rows, and say which are best.",
        "tune clicks.csv --algorithm amm --folds 5",
        "polyplane.cli.verbs.tune",
        (DATA,),
        [
            algorithm_option("The algorithm to tune, of those below."),
            Option("stated", "Values to try instead of the usual ones, such as "
                   "alpha=1e-3,1e-4; may be said again.", list[str], ("--try",),
                   shown="NAME=VALUES"),
            Option("metric", "What is best: the least error, log-loss or Brier score, or the most "
                   "AUC or average precision. Default: error.",
                   shown="|".join(METRICS), choices=METRICS),
            _with_default(THRESHOLD, AT_THRESHOLD),
            POSITIVE,
            FOLDS,
            Option("share", "Share of the rows that is held out, without --folds. Default: 0.2.",
                   float, shown="NUMBER"),
            _with_default(ROWS, "20000"),
            SCALE,
            SEED,
            *parameter_options(chosen),
            *reading_options(),
            *screen_options(),
        ],
        "Parameters that are given as options are fixed at that value.",
        _list_of_algorithms(),
    )  # fmt: skip


def _explore() -> Verb:
    return Verb(
        "explore",
        "Is it nonlinear, and what would it buy? Machines of different kinds side by side.",
        "explore clicks.csv --report page.html --budget 60s",
        "polyplane.cli.verbs.explore",
        (DATA,),
        [
            Option(
                "report",
                "A page to write, for a browser: after some seconds, and in the end.",
                shown="FILE",
            ),
            Option("budget", "Time for all of it, such as 60s or 5m. Default: 60s.", shown="TIME"),
            Option(
                "rows",
                "The most rows to try machines on. Default: as many as there is time for.",
                int,
                shown="N",
            ),
            Option("folds", "Parts, each of which is held out once. Default: 3.", int, shown="K"),
            SEED,
            JOBS,
            *reading_options(),
            *screen_options(),
        ],
    )


def _convert() -> Verb:
    return Verb(
        "convert",
        "Write rows in another format, or a model of another program in ours.",
        "convert clicks.csv.gz clicks.parquet",
        "polyplane.cli.verbs.convert",
        (
            Argument("data", "IN", DATA.help, is_many=True),
            Argument("output", "OUT", "The file to write, or - for standard output."),
        ),
        [
            Option("to", "Format of the file; without it its name says it.",
                   shown="|".join(WRITTEN), choices=WRITTEN),
            *reading_options(),
            *screen_options(),
        ],
        "The file appears when it is whole. Text is compressed if its name ends with .gz, .bz2, "
        ".xz or .zst. A model of LIBSVM, LIBLINEAR or BudgetedSVM becomes a model of polyplane.",
    )  # fmt: skip


def _info() -> Verb:
    return Verb(
        "info",
        "Say what is in a model or in a file of rows.",
        "info clicks.model",
        "polyplane.cli.verbs.info",
        (Argument("file", "FILE", "A model, a file of rows, a pattern, or - for a pipe."),),
        [*reading_options(), *screen_options()],
        trains=False,
    )


def _export() -> Verb:
    return Verb(
        "export",
        "Write a model as ONNX or as C, to predict without polyplane.",
        "export clicks.model --to onnx -o clicks.onnx",
        "polyplane.cli.verbs.export",
        (MODEL,),
        [
            Option("to", "What to write; without it the name of the file says it.",
                   shown="|".join(TARGETS), choices=TARGETS),
            Option("output", "The file to write.", names=("--output", "-o"), shown="FILE"),
            *screen_options(),
        ],
        trains=False,
    )  # fmt: skip


def _bench() -> Verb:
    return Verb(
        "bench",
        "Race polyplane and scikit-learn's linear SGDClassifier on this machine.",
        "bench",
        "polyplane.cli.verbs.bench",
        (),
        [
            Option("rounds", "Times that each is run, in turns. Default: 5.", int, shown="N"),
            SEED,
            *screen_options(),
        ],
    )


def _demo() -> Verb:
    return Verb(
        "demo",
        "Train on digits and show what was learned; takes a few seconds, needs nothing.",
        "demo",
        "polyplane.cli.verbs.demo",
        (),
        screen_options(),
    )


def _list_of_algorithms() -> dict[str, list[tuple[str, str]]]:
    return {"Algorithms": [(one.name, one.says) for one in algorithms().values()]}


def _with_default(option: Option, default: str) -> Option:
    return Option(option.name, option.help.format(default), option.kind, shown=option.shown)


VERBS: dict[str, Callable[[Algorithm | None], Verb]] = {
    "train": _train,
    "predict": lambda chosen: _predict(),
    "evaluate": lambda chosen: _evaluate(),
    "tune": _tune,
    "explore": lambda chosen: _explore(),
    "convert": lambda chosen: _convert(),
    "info": lambda chosen: _info(),
    "export": lambda chosen: _export(),
    "bench": lambda chosen: _bench(),
    "demo": lambda chosen: _demo(),
}


def verb_called(name: str, words: Sequence[str] = ()) -> Verb:
    """A verb; where the words name an algorithm, its help speaks of that one."""
    return VERBS[name](algorithm_named_in(words))


def algorithm_named_in(words: Sequence[str]) -> Algorithm | None:
    """The algorithm that a command line names, if it does."""
    for word, following in pairwise([*words, ""]):
        name = following if word in ("--algorithm", "-a") else word.partition("--algorithm=")[2]
        if name in algorithms():
            return algorithms()[name]
    return None
