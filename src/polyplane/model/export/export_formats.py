"""The formats of exports, one record for each.

A new format is a file with a function, and a record here: `polyplane.to_<name>` writes it out with
its parameters, and `polyplane export` takes names, suffixes and options from the record. Modules
are loaded when they are used, so that the command line can show its options at once.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["EXPORT_FORMATS", "ExportFormat", "ExportOption"]

DIALECTS = "duckdb", "sqlite", "postgres"


@dataclass(frozen=True)
class ExportOption:
    """An option of a format: a parameter of its function, and --name on the command line."""

    name: str
    help: str
    choices: Sequence[str] = ()
    is_multiple: bool = False


@dataclass(frozen=True)
class ExportFormat:
    """A format: what it is called, who makes it, and what it cannot hold."""

    name: str
    title: str  # in sentences
    suffixes: Sequence[str]  # of files
    module: str
    function: str  # of an exported model, a path or None, and options; returns text or a message
    refuses: Sequence[str]  # what cannot be exported to it
    options: Sequence[ExportOption] = ()
    extra: str = ""  # of polyplane that has to be installed
    is_unicode: bool = False  # texts that are not Unicode are refused

    def maker(self) -> Callable[..., Any]:
        """Return the function, whose module is imported now."""
        made: Callable[..., Any] = getattr(importlib.import_module(self.module), self.function)
        return made


ONNX = ExportFormat(
    name="onnx",
    title="ONNX",
    suffixes=(".onnx",),
    module="polyplane.model.export.onnx_graphs.model",
    function="as_onnx",
    refuses=("files above 2 GB",),
    extra="onnx",
    is_unicode=True,
)
C = ExportFormat(
    name="c",
    title="C",
    suffixes=(".h", ".c"),
    module="polyplane.model.export.c_headers.header",
    function="as_c",
    refuses=("free text", "more than 4,194,304 numbers"),
    options=(ExportOption("name", "With what names in the header begin."),),
)
SQL = ExportFormat(
    name="sql",
    title="SQL",
    suffixes=(".sql",),
    module="polyplane.model.export.sql_queries.query",
    function="as_sql",
    refuses=("free text", "kernel classifiers", "more than 2,097,152 numbers of planes"),
    options=(
        ExportOption("dialect", "Database for which the query is written.", DIALECTS),
        ExportOption("table", "Table of the rows."),
        ExportOption("keys", "Column of the table to hand on; may be repeated.", is_multiple=True),
    ),
    is_unicode=True,
)
EXPORT_FORMATS = {one.name: one for one in (ONNX, C, SQL)}
