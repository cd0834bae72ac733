"""A fitted classifier as a header of C99, which is C++ too: tables, and functions over them.

Nothing is allocated, and only <math.h>, <stddef.h> and <stdint.h> are included. Numbers are those
of the model, exactly; arithmetic is the engine's in another order of sums, so that scores differ
from ours by rounding.
"""

import os
import re
from pathlib import Path

import numpy as np

from polyplane import __version__
from polyplane.arrays import Array
from polyplane.engine.rows.products import n_mapped
from polyplane.engine.rows.turned import n_directions
from polyplane.model.export.c_headers import code as c_code
from polyplane.model.export.c_headers.table import SCORES, write_table
from polyplane.model.export.c_headers.text import Header, literal
from polyplane.model.export.content import (
    Exported,
    Mapped,
    Planes,
    formula_of,
    sides_of_problems,
    support_of,
)
from polyplane.model.format.model_file import ModelError
from polyplane.model.kernels.kernel_formulas import entry_of
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.many_classes.decision_rules import rule_of
from polyplane.model.many_classes.decomposition import Decomposition

__all__ = ["as_c", "c_header"]

HEAD = """\
/* $summary.
   Written by polyplane $version. */
#ifndef NAME_H
#define NAME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

"""
SCALED = """
/* What the model sees of column j. */
static inline float name_scaled(int32_t j, float x) {
    (void)j;
$steps\
    return x;
}
"""


def as_c(exported: Exported, path: str | os.PathLike[str] | None, name: str | None = None) -> str:
    """Return the header, whose names begin with `name`, by default that of the file."""
    return c_header(exported, _c_name(path, name), __version__)


def _c_name(path: str | os.PathLike[str] | None, name: str | None) -> str:
    """With what names of functions begin: as given, or made of the file's name."""
    if name is None:
        stem = "polyplane" if path is None else Path(path).name.split(".")[0]
        name = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = name if name[:1].isalpha() else f"model_{name}"
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ModelError(
            f"name is {name!r}, with which names in C cannot begin: use letters, digits and "
            "underscores, a letter first"
        )
    return name


def c_header(exported: Exported, name: str, version: str) -> str:
    """The header; functions begin with `name`, macros and tables with the same in capitals."""
    header = Header(name)
    header.code(HEAD, summary=exported.summary(), version=version)
    table = exported.table
    header.define("N_FEATURES", exported.n_columns if table is None else len(table.columns))
    header.define("WIDTH", exported.n_columns)
    header.define("N_CLASSES", int(exported.classes.size))
    header.texts("CLASSES", [str(label) for label in exported.classes.tolist()])
    if exported.column_names:
        header.texts("COLUMNS", list(exported.column_names))
    row = "const float *x" if table is None else write_table(header, table)
    _write_scaling(header, exported)
    scorer = exported.scorer
    if isinstance(scorer, Planes):
        _write_planes(header, exported, scorer)
    else:
        _write_kernels(header, exported, scorer)
    _write_functions(header, exported, row)
    header.code("\n#endif\n")
    return "".join(header.parts)


def _write_scaling(header: Header, exported: Exported) -> None:
    """The steps of a pipeline, in double and rounded after each."""
    steps = []
    for k, scaling in enumerate(exported.scalings):
        wide = "(double)x"
        if scaling.shift is not None:
            header.table(f"MEANS_{k}", scaling.shift)
            wide = f"({wide} - NAME_MEANS_{k}[j])"
        if scaling.divisor is not None:
            header.table(f"DIVISORS_{k}", scaling.divisor)
            wide = f"{wide} / NAME_DIVISORS_{k}[j]"
        steps.append(f"    x = (float)({wide});\n")
        if scaling.limits is not None:
            low, high = (literal(np.float32(limit)) for limit in scaling.limits)
            steps.append(f"    x = x < {low} ? {low} : x > {high} ? {high} : x;\n")
    header.code(SCALED, steps="".join(steps))


def _of_x(exported: Exported) -> dict[str, str]:
    """Return names of the function that scores the numbers which the model sees."""
    if exported.table is None:
        return {"scores": "name_scores", "numbers": "NAME_N_FEATURES"}
    return {"scores": "name_scores_of_x", "numbers": "NAME_WIDTH"}


def _write_functions(header: Header, exported: Exported, row: str) -> None:
    """Write the functions that users call, on a row as they hold it."""
    scorer = exported.scorer
    table = exported.table
    call = {"row": row, "given": row.split("*")[-1]}
    if table is not None:
        header.code(SCORES, **call)
    header.code(c_code.PREDICT, **call)
    if not isinstance(scorer, Planes):
        return
    keeps_zeros = all(scaling.keeps_zeros for scaling in exported.scalings)
    is_plain = scorer.columns is None and (table is None or table.sets_no_more)
    if keeps_zeros and is_plain:
        header.code(c_code.SPARSE_ROWS)
    if exported.calibration is not None:
        header.code("\n")
        header.define("CALIBRATION", np.float64(exported.calibration))
        header.code(c_code.PROBABILITIES, **call)


# ---- planes ------------------------------------------------------------------------------


def _write_planes(header: Header, exported: Exported, planes: Planes) -> None:
    header.code("\n")
    header.define("N_PLANES", planes.n_planes)
    header.table("CONSTANTS", planes.constants)
    header.table("SCALES", planes.scales)
    if planes.columns is None:
        header.table("SUMS", planes.sums)
        header.code(c_code.PLANES + c_code.PLAIN_ROWS)
    elif isinstance(planes.columns, Mapped):
        _write_mapped(header, planes, planes.columns)
    else:
        header.check_room(n_mapped(exported.n_columns) * planes.n_planes)
        header.table("SUMS", planes.of_products(exported.n_columns))
        header.code(c_code.PLANES + c_code.PRODUCT_ROWS)
    _write_groups(header, planes, exported.decomposition)
    header.code(c_code.BEST_CLASS)
    header.code(c_code.PLANE_SCORES, **_of_x(exported))


def _write_mapped(header: Header, planes: Planes, columns: Mapped) -> None:
    table, turn = columns
    header.table("SUMS", planes.sums)
    header.table("KNOT_STARTS", table.knot_starts)
    header.table("KNOTS", table.knots)
    header.table("RANKS", table.ranks)
    header.table("SHIFTS", table.shifts)
    header.table("FACTORS", table.factors)
    header.table("N_HATS", table.n_hats)
    header.table("FIRST_HAT", table.first_hat)
    header.code("\n")
    header.define("HEIGHT", np.float32(table.height))
    header.define("N_DIRECTIONS", n_directions(turn))
    if turn is not None:
        header.table("TURN_STARTS", turn.knot_starts)
        header.table("TURN_KNOTS", turn.knots)
        header.table("TURN_RANKS", turn.ranks)
        header.table("TURN_WEIGHTS", turn.weights)
    seen = c_code.COLUMNS if turn is None else c_code.TURNED_COLUMNS
    header.code(c_code.PLANES + c_code.RANKS + seen + c_code.MAPPED_ROWS)


def _write_groups(header: Header, planes: Planes, decomposition: Decomposition) -> None:
    """From scores of planes to scores of classes."""
    header.code("\n")
    header.define("N_GROUPS", decomposition.n_groups())
    header.define("N_ESTIMATORS", planes.n_estimators)
    header.define("N_UNITS", planes.n_units)
    header.table("GROUP_STARTS", planes.group_starts.astype(np.int32))
    has_empty, first = not planes.group_sizes.all(), "planes[start]"
    without = ""
    if has_empty:
        first = "start < end ? planes[start] : without"
        without = c_code.GROUPS_WITHOUT
        if planes.empty_score != -np.inf:
            header.define("EMPTY_SCORE", np.float32(planes.empty_score))
            without += c_code.GROUPS_EMPTY_SCORE
    weight = ""
    if planes.group_weights is not None:
        header.table("GROUP_WEIGHTS", planes.group_weights)
        weight = " * NAME_GROUP_WEIGHTS[g]"
    header.code(
        c_code.GROUPS,
        first=first,
        weight=weight,
        without=without,
        soft=c_code.GROUPS_SOFT if planes.is_soft else "",
        units=c_code.GROUPS_UNITS if planes.n_units > 1 else "",
        mean=c_code.GROUPS_MEAN if planes.n_estimators > 1 else "",
    )
    if decomposition.is_joint:
        header.code(c_code.CLASSES_BY_GROUP)
        return
    _write_decision(header, decomposition, "float")
    header.code(c_code.CLASSES_BY_LEAD)


def _write_decision(header: Header, decomposition: Decomposition, kind: str) -> None:
    """From leads, of a type of C, to scores of classes."""
    sides: Array = sides_of_problems(decomposition)
    rule = rule_of(decomposition.kind, decomposition.combine)
    header.code("\n")
    for key, value in rule.c_constants(decomposition.n_classes).items():
        header.define(key, value)
    header.define("N_PROBLEMS", len(sides))
    header.table("SIDES", sides)
    header.code(c_code.DECIDE.replace("$rule", rule.c), real=kind)


# ---- kernels -----------------------------------------------------------------------------


def _write_kernels(header: Header, exported: Exported, record: KernelRecord) -> None:
    formula, decomposition = formula_of(record), exported.decomposition
    header.check_room(record.support.size * (exported.n_columns + len(record.expansions)))
    support = support_of(record, exported.n_columns)
    header.code("\n")
    header.define("N_SUPPORT", len(support.vectors))
    for key, value in formula._asdict().items():
        if key != "offset":  # which is in the intercepts of finished machines
            header.define(key.upper(), int(value) if key == "degree" else np.float32(value))
    header.table("SUPPORT", support.vectors)
    header.table("COEFS", support.coefs)
    header.table("INTERCEPTS", record.intercepts)
    value = entry_of(formula).c
    if "name_product" in value:
        header.code(c_code.PRODUCT)
    header.code(c_code.KERNEL, formula=value)
    if decomposition.is_joint:
        header.code("\n")
        header.define("N_PROBLEMS", len(record.expansions))
        header.define("SECOND", int(decomposition.ranks[1]) if decomposition.n_classes > 1 else -1)
        header.code(c_code.KERNEL_SCORES_OF_TWO, **_of_x(exported))
    else:
        _write_decision(header, decomposition, "double")
        header.code(c_code.KERNEL_SCORES, **_of_x(exported))
    header.code(c_code.BEST_CLASS)
