"""The commands of the command line, with their arguments and options, for click.

The module of a verb is imported when the verb runs, so that `--help` needs neither NumPy nor Numba.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import click

from polyplane import __version__
from polyplane.cli.failures import exit_code_of
from polyplane.cli.light_imports import imported_lightly
from polyplane.model.export.export_formats import EXPORT_FORMATS
from polyplane.model.format.algorithm_names import ALGORITHMS

__all__ = ["DEFAULT_ALGORITHM", "program"]

DEFAULT_ALGORITHM = "polyplane"
SCALES = ("none", "maxabs", "standard")
FORMATS = ("libsvm", "csv", "parquet", "arrow", "npy", "npz", "idx")
WRITTEN_FORMATS = FORMATS[:-1]
OPTIONS, READING, OUTPUT = PANELS = ("Options", "Reading rows", "Output")
Decorator = Callable[[Any], Any]


class _Option(click.Option):
    """An option with the heading under which help shows it."""

    def __init__(self, *names: Any, panel: str = OPTIONS, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.panel = panel


class _Command(click.Command):
    """A command whose help shows its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each panel that has some."""
        for panel in PANELS:
            options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
            options = [one for one in options if getattr(one, "panel", OPTIONS) == panel]
            records = [one.get_help_record(ctx) for one in options]
            shown = [record for record in records if record is not None]
            if shown:
                with formatter.section(panel):
                    formatter.write_dl(shown)


class _Program(click.Group):
    """The program, which suggests the name of a command that is misspelt."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command; releases of click before 8.2 make no suggestion."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1].isalnum():
            close = get_close_matches(name, self.commands, 1)
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close[0]!r}?' if close else ''}")
        return super().resolve_command(ctx, args)


CONTEXT = {"help_option_names": ["--help"], "max_content_width": 100}


@click.group(
    cls=_Program,
    context_settings=CONTEXT,
    no_args_is_help=False,
    invoke_without_command=True,
    epilog="`polyplane VERB --help` shows the options of a verb, with an example.",
)
@click.version_option(__version__, message="polyplane %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Nonlinear classifiers at the price of linear ones: train, predict, look inside."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _option(*names: str, panel: str = OPTIONS, **attributes: Any) -> Decorator:
    return click.option(*names, cls=_Option, panel=panel, **attributes)


def _flag(*names: str, **attributes: Any) -> Decorator:
    return _option(*names, is_flag=True, **attributes)


def _all_of(decorators: Sequence[Decorator]) -> Decorator:
    """Return one decorator that applies several, the first of which is shown first."""

    def decorate(function: Any) -> Any:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


def _verb(example: str) -> Decorator:
    """Return the decorator that makes a command of a function, with an example in its help."""

    def decorate(function: Any) -> Any:
        summary = (function.__doc__ or "").partition("\n")[0]
        epilog = f"\b\nExample:\n  polyplane {example}"
        return program.command(cls=_Command, short_help=summary, epilog=epilog)(function)

    return decorate


# ---- options that several verbs share ----------------------------------------------------

DATA = click.argument("data", nargs=-1, required=True)
MODEL = click.argument("model")
SEED = _option(
    "--seed",
    type=int,
    metavar="N",
    help="Seed: the same seed, rows and versions give the same model.",
)
JOBS = _option("--jobs", type=int, metavar="N", help="Threads; -1 uses all cores.")
POSITIVE = _option(
    "--positive",
    metavar="LABEL",
    help="Label of the positive class of two. Default: the second, in the order of labels.",
)


def _threshold(meaning: str) -> Decorator:
    words = f"{meaning} For two classes and estimators with probabilities."
    return _option("--threshold", type=float, metavar="NUMBER", help=words)


def _reading(name: str, meaning: str, **attributes: Any) -> Decorator:
    return _option(name, panel=READING, help=meaning, **attributes)


TABLE_FORMATS = "(CSV, Parquet, Arrow)"
with_reading = _all_of(
    [
        _reading(
            "--format",
            "Format of the rows; without it the first bytes or the name say it.",
            type=click.Choice(FORMATS),
        ),
        _reading(
            "--n-features",
            "Number of columns, where rows may lack the last ones (LIBSVM text).",
            type=int,
            metavar="N",
        ),
        _reading(
            "--base",
            "Where indices start; without it the first rows tell (LIBSVM text).",
            type=click.Choice(("0", "1")),
        ),
        _reading(
            "--text-labels/--no-text-labels",
            "Labels are text even if they look like numbers (LIBSVM text).",
            default=None,
        ),
        _reading(
            "--label",
            "Column of the label: its name, its position (0 is the first, -1 the "
            "last), or none. Without it a column called label, class, target or y, else the last "
            f"{TABLE_FORMATS}.",
            metavar="COLUMN",
        ),
        _reading(
            "--drop",
            f"A column that is not read, by name or position; repeatable {TABLE_FORMATS}.",
            multiple=True,
            metavar="COLUMN",
        ),
        _reading(
            "--text-columns",
            f"A column that is text even if it looks like numbers; repeatable {TABLE_FORMATS}.",
            multiple=True,
            metavar="COLUMN",
        ),
        _reading(
            "--missing",
            "A value that is missing is filled and marked, or an error, or zero, or "
            "its row is skipped; without it as the model does, and filled in training "
            f"{TABLE_FORMATS}.",
            type=click.Choice(("fill", "error", "zero", "skip")),
        ),
        _reading(
            "--categories",
            "Text becomes a column for each value, or is hashed to --n-hash "
            f"columns {TABLE_FORMATS}.",
            type=click.Choice(("onehot", "hash")),
        ),
        _reading("--n-hash", f"Columns for hashed text {TABLE_FORMATS}.", type=int, metavar="N"),
        _reading(
            "--delimiter",
            "The character between fields, or tab; without it the first rows tell (CSV).",
            metavar="TEXT",
        ),
        _reading(
            "--header/--no-header",
            "Whether the first line holds the names of columns; without it the rows tell (CSV).",
            default=None,
        ),
        _reading(
            "--labels",
            "The file of the labels; without it one beside the rows whose name fits "
            "(npy, npz, IDX).",
            metavar="FILE",
        ),
        _reading(
            "--part",
            "The part that is read where a file holds several, such as train and test (npz).",
            metavar="NAME",
        ),
        _reading(
            "--on-bad",
            "A row that cannot be read is an error (raise), or is left out and counted (skip).",
            type=click.Choice(("raise", "skip")),
        ),
    ]
)
READING_NAMES = (
    "format", "n_features", "base", "text_labels", "label", "drop", "text_columns", "missing",
    "categories", "n_hash", "delimiter", "header", "labels", "part", "on_bad",
)  # fmt: skip
with_output = _all_of(
    [
        _flag(
            "--json",
            panel=OUTPUT,
            help="Print results as JSON, and nothing else, on standard output.",
        ),
        _flag("--quiet", "-q", panel=OUTPUT, help="No progress and no remarks."),
        _flag("--debug", panel=OUTPUT, help="Show the traceback of an error."),
    ]
)


# ---- verbs -------------------------------------------------------------------------------


@_verb("train clicks.csv.gz --test later.csv.gz --model clicks.model")
@click.argument("data", nargs=-1)
@_option("--test", metavar="FILE", help="Rows on which the error is measured in the end.")
@_threshold(
    "With --test: also count errors where the positive class is predicted from this probability on."
)
@POSITIVE
@_option("--model", "-m", metavar="FILE", help="File for the model.")
@_option(
    "--algorithm",
    "-a",
    default=DEFAULT_ALGORITHM,
    show_default=True,
    type=click.Choice(tuple(ALGORITHMS)),
    help="The algorithm to train.",
)
@_option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the algorithm, such as n_planes=16; repeatable.",
)
@_flag(
    "--list-settings",
    help="Show name, default, range and meaning of every setting of the algorithm.",
)
@_flag("--stream", help="Read rows a chunk at a time, for files of any size.")
@_option("--chunk-rows", type=int, metavar="N", help="Rows of a chunk of a stream.")
@_flag("--cache", help="Keep parsed rows beside each file, for later passes.")
@_option(
    "--scale",
    type=click.Choice(SCALES),
    help="Divide columns by their largest absolute "
    "value (maxabs), or give them mean 0 and deviation 1 (standard). The model keeps what it "
    "needs for that. Default: none.",
)
@_option(
    "--resume", metavar="MODEL", help="Go on with a model, or with a training that was stopped."
)
@_option(
    "--checkpoint", metavar="EVERY", help="Write the model every so often: 60s, 5m or 100000 rows."
)
@_option(
    "--cluster",
    metavar="ADDRESS",
    help="Train on a Dask cluster: the address of its "
    "scheduler, or local:8 for eight processes here.",
)
@_option(
    "--learners",
    type=int,
    metavar="N",
    help="Models trained side by side on the cluster. Default: one a thread.",
)
@SEED
@JOBS
@with_reading
@with_output
def train(**given: Any) -> int:
    """Train a model on rows of files and write it to a file.

    DATA are files, patterns such as 'part-*.csv', or - for a pipe. The defaults of all settings
    suit most data: try them first.
    """
    if not given["data"] and not given["list_settings"]:
        raise click.UsageError("Missing argument 'DATA...'.")
    return _run("train", given)


@_verb("predict clicks.model new.csv -o labels.csv --scores")
@MODEL
@DATA
@_option(
    "--output", "-o", metavar="FILE", help="File for the predictions; standard output without it."
)
@_flag("--scores", help="Add the score of each class; of two, the second one's margin.")
@_flag("--proba", help="Add the probability of each class.")
@_threshold("Predict the positive class from this probability on.")
@POSITIVE
@_flag("--planes", help="Add the number of the plane that decided.")
@JOBS
@with_reading
@with_output
def predict(**given: Any) -> int:
    """Label the rows of files, of a pipe or of a stream without end.

    MODEL is a file that `polyplane train` has written. Labels in the rows are not read and need
    not be there. Predictions are one label a line; with --scores, --proba or --planes, CSV with a
    header; with --json, one object a line.
    """
    return _run("predict", given, needs_estimators=False)


@_verb("evaluate clicks.model later.csv --threshold 0.2")
@MODEL
@DATA
@_threshold("Also count errors where the positive class is predicted from this probability on.")
@POSITIVE
@JOBS
@with_reading
@with_output
def evaluate(**given: Any) -> int:
    """Measure a model on labelled rows: errors, probabilities, each class, planes used.

    Ranks (AUC and average precision) are exact up to a million rows of two classes, or rows times
    classes, and to some parts in ten thousand beyond.
    """
    return _run("evaluate", given, needs_estimators=False)


@_verb("explore clicks.csv --report page.html --budget 60s")
@DATA
@_option(
    "--report",
    metavar="FILE",
    help="A page to write, for a browser: after some seconds, and in the end.",
)
@_option(
    "--budget",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Time for all of it, such as 60s or 5m.",
)
@_option(
    "--rows",
    type=int,
    metavar="N",
    help="The most rows to try algorithms on. Default: as many as there is time for.",
)
@_option(
    "--folds",
    type=int,
    metavar="K",
    default=3,
    show_default=True,
    help="Parts, each of which is held out once.",
)
@SEED
@JOBS
@with_reading
@with_output
def explore(**given: Any) -> int:
    """Is it nonlinear, and what would it buy? Algorithms of different kinds side by side."""
    return _run("explore", given)


@_verb("convert clicks.csv.gz clicks.parquet")
@DATA
@click.argument("output")
@_option(
    "--to",
    type=click.Choice(WRITTEN_FORMATS),
    help="Format of the file; without it its name says it.",
)
@with_reading
@with_output
def convert(**given: Any) -> int:
    """Write rows in another format, or a model of another program in ours.

    OUTPUT is a file, or - for standard output. The file appears when it is whole. Text is
    compressed if its name ends with .gz, .bz2, .xz or .zst. A model of LIBSVM or LIBLINEAR becomes
    a model of polyplane.
    """
    return _run("convert", given)


@_verb("info clicks.model")
@click.argument("file")
@with_reading
@with_output
def info(**given: Any) -> int:
    """Show what is in a model or in a file of rows.

    FILE is a model, a file of rows, a pattern, or - for a pipe.
    """
    return _run("info", given, needs_estimators=False)


EXPORT_OPTIONS = [
    _option(
        f"--{option.name}",
        help=f"{option.help} ({one.title} only.)",
        type=click.Choice(list(option.choices)) if option.choices else str,
        multiple=option.is_multiple,
    )
    for one in EXPORT_FORMATS.values()
    for option in one.options
]


@_verb("export clicks.model --to onnx -o clicks.onnx")
@MODEL
@_option(
    "--to",
    type=click.Choice([*EXPORT_FORMATS]),
    help="What to write; without it the name of the file says it.",
)
@_option("--output", "-o", metavar="FILE", help="The file to write.")
@_all_of(EXPORT_OPTIONS)
@with_output
def export(**given: Any) -> int:
    """Write a model as ONNX, C or SQL, to predict without polyplane."""
    return _run("export", given, needs_estimators=False)


@_verb("demo")
@with_output
def demo(**given: Any) -> int:
    """Train on digits and show what was learned; takes a few seconds, needs nothing."""
    return _run("demo", given)


def _run(verb: str, given: dict[str, Any], needs_estimators: bool = True) -> int:
    """Import the module of a verb and call its `run`; return the exit code."""
    module: Any = imported_lightly("polyplane.cli.output.screen", with_estimators=False)
    screen = module.Screen(**{name: given.pop(name) for name in ("json", "quiet", "debug")})

    def work() -> int | None:
        if "on_bad" in given:
            options = {name: given.pop(name) for name in READING_NAMES}
            given["reading"] = _reading_options(options)
        name = f"polyplane.cli.verbs.{verb}"
        code: int | None = imported_lightly(name, with_estimators=needs_estimators).run(
            screen, **given
        )
        return code

    with screen.remarks():
        return exit_code_of(work, screen.debug)


def _reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `polyplane.read` for those that stand on the command line."""
    options = {name: value for name, value in given.items() if value not in (None, ())}
    for name in {"drop", "text_columns"} & options.keys():
        options[name] = [_column(text) for text in options[name]]
    if "label" in options:
        options["label"] = None if options["label"] == "none" else _column(options["label"])
    if options.get("delimiter") in ("tab", "\\t"):
        options["delimiter"] = "\t"
    if "base" in options:
        options["base"] = int(options["base"])
    return options


def _column(text: str) -> str | int:
    """Return the position that a text says, or the text as a name."""
    return int(text) if text.removeprefix("-").isdecimal() else text
