"""`polyplane export`: a model for where there is no polyplane."""

from pathlib import Path
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.input.model_input import layout_of
from polyplane.cli.output.screen import Screen
from polyplane.estimator.files.exported_tables import exported_table
from polyplane.model.export.content import Exported
from polyplane.model.export.export_formats import EXPORT_FORMATS, ExportFormat
from polyplane.model.export.exporting import export, exported_of
from polyplane.model.format.prediction_part import read_fitted, refusing
from polyplane.model.prediction import FittedModel

__all__ = ["run"]

MOST_NAMED = 10  # columns in a sentence


def run(screen: Screen, *, model: str, to: str | None, output: str | None, **given: Any) -> None:
    """Write it in another form."""
    if output is None:
        raise CallError("The file to write is missing: name it with -o.")
    target = _format_of(to, output)
    options = {name: value for name, value in given.items() if value not in (None, ())}
    for name in options.keys() - {option.name for option in target.options}:
        raise CallError(f"--{name} is not an option of {target.title}: leave it out.")
    exported = _exported(read_fitted(model), model)
    export(exported, target, output, **options)
    n_bytes = Path(output).stat().st_size
    screen.say(f"Wrote {output}: {n_bytes:,} bytes of {target.name}.")
    if exported.table is not None:
        screen.say(f"It takes {_columns_in_words(exported)}.")
    screen.result({"output": output, "to": target.name, "bytes": n_bytes})


def _format_of(to: str | None, output: str) -> ExportFormat:
    """Return the format that --to, or the name of the file, states."""
    suffix = Path(output).suffix.lower()
    for one in EXPORT_FORMATS.values():
        if one.name == to or (to is None and suffix in one.suffixes):
            return one
    found = f"--to is {to!r}" if to else f"{output!r} states no form"
    raise CallError(f"{found}, expected one of {', '.join(EXPORT_FORMATS)}: pass it with --to.")


def _exported(fitted: FittedModel, path: str) -> Exported:
    with refusing(path):
        layout = layout_of(fitted)
    names = (fitted.names if fitted.scaler is None else fitted.scaler.names) or ()
    scalers = [] if fitted.scaler is None else [fitted.scaler]
    return exported_of(fitted, scalers, names, exported_table(layout, fitted.n_columns))


def _columns_in_words(exported: Exported) -> str:
    """The columns of a table that a program has to give."""
    assert exported.table is not None
    columns = exported.table.columns
    if exported.table.is_of_numbers:
        return f"rows of {len(columns):,} number{'s' * (len(columns) > 1)}"
    named = [f"{column.name!r} ({column.kind})" for column in columns[:MOST_NAMED]]
    more = f" and {len(columns) - MOST_NAMED:,} more" if len(columns) > MOST_NAMED else ""
    return f"the columns {', '.join(named)}{more}"
